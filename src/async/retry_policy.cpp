#include "async/retry_policy.hpp"

#include <algorithm>

namespace pipeline::async {

std::chrono::milliseconds Backoff::next(std::optional<std::chrono::seconds> wanted) {
  using std::chrono::milliseconds;
  const milliseconds doubled = policy_.first_pause * (1LL << std::min(tries_, 20u));
  ++tries_;
  const auto longest = std::max(std::min(doubled, policy_.longest_pause), milliseconds(1));
  std::uniform_int_distribution<long long> chance(longest.count() / 2, longest.count());
  const milliseconds own(chance(random_));
  return wanted ? std::max<milliseconds>(*wanted, own) : own;
}

Task<> pause_for(std::chrono::milliseconds time, core::CancelSource* cancel) {
  if (cancel && cancel->level() != core::StopLevel::none) co_return;
  asio::steady_timer timer(co_await asio::this_coro::executor, time);
  std::optional<core::CancelSource::Listener> listener;
  if (cancel) listener.emplace(*cancel, [&timer](core::StopLevel) { timer.cancel(); });
  boost::system::error_code ignored;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

}  // namespace pipeline::async
