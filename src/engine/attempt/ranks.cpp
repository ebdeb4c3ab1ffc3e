#include "engine/attempt/ranks.hpp"

#include "async/finally.hpp"
#include "async/joinable_task.hpp"
#include "async/sleep.hpp"
#include "core/log.hpp"
#include "core/scope_guard.hpp"
#include "engine/attempt/progress.hpp"
#include "orchestrators/preflight.hpp"
#include "orchestrators/rank_lines.hpp"

namespace pipeline::engine {
namespace {

constexpr std::size_t max_rank_tail = 50;  ///< Lines that are kept of each rank.

}  // namespace

async::Task<orchestrators::AttemptResult> Ranks::run(orchestrators::AttemptRunner& runner,
                                                     const orchestrators::Attempt& attempt,
                                                     StallWatch& silence) {
  orchestrators::Gang gang(runner, attempt);
  running_ = &gang;
  const core::ScopeGuard is_over([this] { running_ = nullptr; });
  const auto executor = co_await asio::this_coro::executor;
  async::JoinableTask watch(executor, watch_progress(silence));
  auto result = co_await async::finally(gang.run(), [&] {
    over_.stop(core::StopLevel::graceful);
    return watch.join();
  });
  failed_ = gang.failed_rank();
  co_return result;
}

/// Looks for progress of the ranks from time to time, until the attempt has ended.
async::Task<> Ranks::watch_progress(StallWatch& silence) {
  const auto pause = silence.pause_between_looks();
  if (!pause) co_return;
  Progress progress;
  while (over_.level() == core::StopLevel::none) {
    co_await async::sleep(*pause, &over_);
    if (over_.level() != core::StopLevel::none) break;
    std::optional<Clock::time_point> since;
    try {
      const auto all = co_await running_->activity();
      since = progress.take(all, Clock::now());
    } catch (const std::exception& error) {
      core::log::info(std::string("cannot find out what the ranks do: ") + error.what());
    }
    if (since) silence.note_progress(*since);
  }
}

async::Task<std::vector<std::string>> Ranks::waits() const {
  if (!running_) co_return std::vector<std::string>{};
  co_return co_await running_->waits();
}

orchestrators::RunningProcess Ranks::process_of(unsigned rank,
                                                const orchestrators::Attempt& attempt) const {
  if (running_) return running_->process_of(rank);
  return {attempt.run_id, attempt.step.name, attempt.number, rank};
}

void Ranks::take(event::StepLog& log) {
  const auto found = orchestrators::rank_of_line(log.line);
  if (!found) return;
  log.rank = found->first;
  log.line = std::string(found->second);
  auto& tail = tails_[*log.rank];
  // Lines about the check of the GPUs before the command do not explain a failure of the command.
  if (tail.empty() && log.line.starts_with(orchestrators::preflight_mark)) return;
  tail.push_back(log.line);
  if (tail.size() > max_rank_tail) tail.pop_front();
}

const std::deque<std::string>* Ranks::tail_of_failed() const {
  if (!failed_) return nullptr;
  const auto found = tails_.find(*failed_);
  return found == tails_.end() ? nullptr : &found->second;
}

}  // namespace pipeline::engine
