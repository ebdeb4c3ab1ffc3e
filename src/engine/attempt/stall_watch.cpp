#include "engine/attempt/stall_watch.hpp"

#include <algorithm>
#include <utility>

namespace pipeline::engine {

void StallWatch::write(Stream stream, std::string_view bytes) {
  if (last_output_) last_output_ = Clock::now();
  if (is_reported_) {
    is_reported_ = false;
    timer_.cancel();
  }
  log_.write(stream, bytes);
}

void StallWatch::begin() {
  if (last_output_) return;
  last_output_ = Clock::now();
  timer_.cancel();
}

void StallWatch::note_progress(Clock::time_point until) {
  if (!last_output_ || until <= *last_output_) return;
  last_output_ = until;
  if (std::exchange(is_reported_, false)) timer_.cancel();
}

std::optional<Clock::duration> StallWatch::pause_between_looks() const {
  if (!after_) return std::nullopt;
  constexpr std::chrono::milliseconds max_pause{500};
  return std::min<Clock::duration>(max_pause, std::chrono::milliseconds(after_->count()) / 4);
}

void StallWatch::end() {
  has_ended_ = true;
  timer_.cancel();
}

async::Task<bool> StallWatch::stalled() {
  while (!has_ended_ && after_) {
    const auto due = last_output_ && !is_reported_
                         ? *last_output_ + std::chrono::milliseconds(after_->count())
                         : asio::steady_timer::time_point::max();
    if (Clock::now() >= due) {
      is_reported_ = true;
      co_return true;
    }
    timer_.expires_at(due);
    boost::system::error_code ignored;
    co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  co_return false;
}

}  // namespace pipeline::engine
