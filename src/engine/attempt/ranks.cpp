#include "engine/attempt/ranks.hpp"

#include "core/scope_guard.hpp"
#include "orchestrators/nodes.hpp"
#include "orchestrators/preflight.hpp"

namespace pipeline::engine {
namespace {

constexpr std::size_t tail_of_rank = 50;

}  // namespace

async::Task<orchestrators::AttemptResult> Ranks::run(orchestrators::AttemptRunner& runner,
                                                     const orchestrators::Attempt& attempt) {
  orchestrators::Gang gang(runner, attempt);
  running_ = &gang;
  const core::ScopeGuard is_over([this] { running_ = nullptr; });
  auto result = co_await gang.run();
  failed_ = gang.failed_rank();
  co_return result;
}

async::Task<std::vector<std::string>> Ranks::waits() const {
  if (!running_) co_return std::vector<std::string>{};
  co_return co_await running_->waits();
}

void Ranks::take(event::StepLog& log) {
  const auto found = orchestrators::rank_of_line(log.line);
  if (!found) return;
  log.rank = found->first;
  log.line = std::string(found->second);
  auto& tail = tails_[*log.rank];
  if (tail.empty() && log.line.starts_with(orchestrators::preflight_mark)) return;
  tail.push_back(log.line);
  if (tail.size() > tail_of_rank) tail.pop_front();
}

const std::deque<std::string>* Ranks::tail_of_failed() const {
  if (!failed_) return nullptr;
  const auto found = tails_.find(*failed_);
  return found == tails_.end() ? nullptr : &found->second;
}

}  // namespace pipeline::engine
