#include "core/reading_stop.hpp"

#include <atomic>

namespace pipeline::core {
namespace {

std::atomic<bool> reading_is_stopped = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a handler of signals sets it");

}  // namespace

void stop_reading() noexcept { reading_is_stopped = true; }

void permit_reading() noexcept { reading_is_stopped = false; }

bool is_reading_stopped() noexcept { return reading_is_stopped; }

void check_reading() {
  if (reading_is_stopped) throw Stopped("was stopped");
}

}  // namespace pipeline::core
