#include "async/sleep.hpp"

#include <optional>

namespace pipeline::async {

Task<> sleep(std::chrono::steady_clock::duration time, core::CancelSource* cancel) {
  if (cancel && cancel->level() != core::StopLevel::none) co_return;
  asio::steady_timer timer(co_await asio::this_coro::executor, time);
  std::optional<core::CancelSource::Listener> listener;
  if (cancel) listener.emplace(*cancel, [&timer](core::StopLevel) { timer.cancel(); });
  boost::system::error_code ignored;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

}  // namespace pipeline::async
