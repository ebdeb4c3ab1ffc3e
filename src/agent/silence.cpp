#include "agent/silence.hpp"

#include <algorithm>
#include <ctime>

#include "agent/waits.hpp"

namespace pipeline::agent {
namespace {

constexpr long max_look_pause = 500;  // Milliseconds.
constexpr long max_wait = 60'000;     // Milliseconds; bounded, because poll(2) takes an int.
constexpr long looks_in_limit = 4;

/// Returns the milliseconds of the monotonic clock.
long silence_clock() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000 + time.tv_nsec / 1'000'000;
}

}  // namespace

Silence::Silence(long limit, bool counts_progress)
    : limit_(limit),
      look_pause_(std::min(max_look_pause, limit / looks_in_limit + 1)),
      counts_progress_(counts_progress && limit > 0),
      marked_(silence_clock()) {
  restart();
}

void Silence::restart() {
  last_sign_ = silence_clock();
  is_reported_ = false;
}

bool Silence::is_over_limit() {
  if (limit_ == 0 || is_reported_ || silence_clock() - last_sign_ < limit_) return false;
  return is_reported_ = true;
}

int Silence::limited_pause(int pause) const {
  const auto now = silence_clock();
  const auto take = [&](long next) {
    const long left = next > now ? std::min(next - now, max_wait) : 0;
    pause = static_cast<int>(pause < 0 ? left : std::min<long>(pause, left));
  };
  if (limit_ > 0 && !is_reported_) take(last_sign_ + limit_);
  if (counts_progress_) take(next_look_);
  return pause;
}

std::optional<long> Silence::look_for_progress(std::initializer_list<pid_t> left_out) {
  const auto now = silence_clock();
  if (!counts_progress_ || now < next_look_) return std::nullopt;
  next_look_ = now + look_pause_;
  const auto done = activity_of_descendants(left_out);
  if (core::is_progress(mark_, done, std::chrono::milliseconds(now - marked_))) {
    mark_ = done;
    marked_ = now;
    has_news_ = true;
    restart();
  }
  if (!has_news_ || now < next_report_) return std::nullopt;
  has_news_ = false;
  next_report_ = now + limit_ / looks_in_limit;
  return now - marked_;
}

}  // namespace pipeline::agent
