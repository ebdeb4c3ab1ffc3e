#include "async/retry_policy.hpp"

#include <algorithm>

namespace pipeline::async {
namespace {

/// The longest pause that a server can ask for.
constexpr std::chrono::seconds max_wanted{300};

}  // namespace

std::chrono::milliseconds Backoff::next(std::optional<std::chrono::seconds> wanted) {
  using std::chrono::milliseconds;
  const milliseconds doubled = policy_.first_pause * (1LL << std::min(tries_, 20u));
  ++tries_;
  const auto max_pause = std::max(std::min(doubled, policy_.max_pause), milliseconds(1));
  std::uniform_int_distribution<long long> chance(max_pause.count() / 2, max_pause.count());
  const milliseconds own(chance(random_));
  return wanted ? std::max<milliseconds>(std::min(*wanted, max_wanted), own) : own;
}

}  // namespace pipeline::async
