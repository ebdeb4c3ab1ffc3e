/// @file
/// What a run's steps have made: where a result comes from if not from an attempt of this run, and
/// who is given it. It comes from an earlier run on this machine, from this run's own earlier
/// driver, or from another machine through the store that they share; and goes there, too.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "engine/cache_exchange.hpp"
#include "engine/decision.hpp"
#include "engine/run.hpp"

namespace pipeline::engine {

class Results {
 public:
  /// Refers to all that it is given. @param user his stop ends what is on the way between machines
  Results(const Services& services, EventSink& events, core::CancelSource& user,
          asio::thread_pool& pool, const RunOptions& options);

  StepKey key(const StepSpec& step, const std::string& environment_id, const OutputsOf& outputs) {
    return decisions_.key(step, environment_id, outputs);
  }

  /// This machine's, if the step may be reused. What it has made itself, a run that goes on always
  /// takes.
  std::optional<store::CacheEntry> here(const StepSpec& step, const std::string& key);

  bool has_store() const { return exchange_.has_value(); }
  /// Throws EnvironmentError unless the store can be used.
  async::Task<> check_store() { return exchange_->check(); }
  /// Whether it is worth a question to the store. What was begun before the run was cut off is not
  /// given up for what another machine has.
  bool may_be_elsewhere(const StepSpec& step, bool was_cut_off) const;
  /// What another machine has made, brought here: from now on it is a result of this machine, too.
  async::Task<std::optional<store::CacheEntry>> fetch_remote(const StepSpec& step,
                                                             const StepKey& key);

  /// Whether others are given what the step makes. A driver that has none of this one's files takes
  /// what the run has made from the store, whatever else may be reused.
  bool are_shared(const StepSpec& step) const {
    return exchange_ && (step.cache || options_.wait_until_persisted);
  }
  /// What was made before the run was cut off may not have been sent by then.
  bool may_be_unsent(const StepSpec& step, const store::CacheEntry& entry) const {
    return options_.resume && entry.run == options_.run_id && are_shared(step);
  }
  /// Beside the steps; what could not be sent is told by conclude().
  async::Task<> send(store::CacheEntry entry) { return exchange_->publish(std::move(entry)); }
  /// Of an attempt that has succeeded: sends what it made, and removes what it has left outside
  /// once no driver of the run can need it.
  async::Task<> hand_on(const StepSpec& step, store::CacheEntry entry,
                        std::function<void()> cleanup);
  /// Of an attempt that has failed.
  async::Task<> clear_away(std::function<void()> cleanup);
  void conclude() {
    if (exchange_) exchange_->conclude();
  }

 private:
  bool may_be_reused(const StepSpec& step) const { return options_.use_cache && step.cache; }

  const PipelineSpec& pipeline_;
  store::RunStore& runs_;
  const RunOptions& options_;
  Decisions decisions_;
  std::optional<CacheExchange> exchange_;
};

}  // namespace pipeline::engine
