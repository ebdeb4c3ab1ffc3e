#include "remote_driver/run_uploader.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "core/log.hpp"

namespace pipeline::remote_driver {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr Clock::duration min_pause = 200ms, usual_pause = 1s;
/// The pause after a save is at least this many times as long as the save took.
constexpr int pause_factor = 5;

}  // namespace

async::Task<> RunUploader::save_now() {
  const auto saved = next_;
  is_wanted_ = true;
  pause_.cancel();
  co_await saved->wait();
}

async::Task<> RunUploader::save_repeatedly() {
  auto pause = min_pause;
  while (!has_ended_) {
    const auto earliest = Clock::now() + pause;
    const auto latest = Clock::now() + std::max(pause, usual_pause);
    while (!has_ended_ && Clock::now() < (is_wanted_ ? earliest : latest)) {
      pause_.expires_at(is_wanted_ ? earliest : latest);
      boost::system::error_code cancelled;
      co_await pause_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
    }
    if (has_ended_) break;
    const auto saved = std::exchange(next_, std::make_shared<async::Gate>(executor_));
    is_wanted_ = false;
    const auto begin = Clock::now();
    try {
      before_write_();
      co_await replica_.save(store_);
    } catch (const std::exception& error) {
      core::log::warn(std::string("the run cannot be saved: ") + error.what());
    }
    pause = std::max<Clock::duration>(min_pause, pause_factor * (Clock::now() - begin));
    saved->open();
  }
  next_->open();
}

async::Task<> RunUploader::end() {
  has_ended_ = true;
  pause_.cancel();
  co_await task_.join();
  before_write_();
  co_await replica_.save(store_);
}

}  // namespace pipeline::remote_driver
