#include "core/reading_stop.hpp"

#include <utility>

#include "core/error.hpp"

namespace pipeline::core {
namespace {

thread_local std::shared_ptr<std::atomic<bool>> reading_is_stopped;  // Null: for no run.

}  // namespace

ReadingStop ReadingStop::of_this_thread() {
  ReadingStop stop;
  if (reading_is_stopped) stop.is_stopped_ = reading_is_stopped;
  return stop;
}

ReadingStop::Scope::Scope(ReadingStop stop)
    : before_(std::exchange(reading_is_stopped, std::move(stop.is_stopped_))) {}

ReadingStop::Scope::~Scope() { reading_is_stopped = std::move(before_); }

void check_reading() {
  if (reading_is_stopped && *reading_is_stopped)
    throw EnvironmentError("was stopped while a file was read");
}

}  // namespace pipeline::core
