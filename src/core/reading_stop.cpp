#include "core/reading_stop.hpp"

#include <atomic>

#include "core/error.hpp"

namespace pipeline::core {
namespace {

std::atomic<bool> reading_is_stopped = false;

}  // namespace

void stop_reading(bool is_stopped) noexcept { reading_is_stopped = is_stopped; }

void check_reading() {
  if (reading_is_stopped) throw EnvironmentError("was stopped while a file was read");
}

}  // namespace pipeline::core
