/// @file
/// Finds and distributes the results of a run's steps. A result comes from an attempt of this run,
/// an earlier run on this machine, an earlier driver of this run, or another machine through the
/// remote cache. New results are sent to the remote cache.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "engine/cache/cache_exchange.hpp"
#include "engine/cache/step_keys.hpp"
#include "engine/graph/selection.hpp"
#include "engine/run_context.hpp"

namespace pipeline::engine {

class Results {
 public:
  /// A stop by the user ends transfers between machines.
  explicit Results(const RunContext& context);

  StepKeys& keys() { return keys_; }
  /// Returns the user's data as this run has read it.
  DataInputs& data() { return keys_.data(); }

  /// Returns this machine's result if the step may reuse it. A resumed run may reuse its own.
  std::optional<store::CacheEntry> find_local(const StepSpec& step, const std::string& key);
  /// For a plan: lets find_local() return nothing without a search, because the run store has no
  /// results at all.
  void expect_none() { has_any_ = false; }

  bool has_remote_cache() const { return exchange_.has_value(); }
  /// Throws EnvironmentError unless the remote cache can be used.
  async::Task<> check_remote_cache() { return exchange_->check(); }
  /// Returns true if the remote cache is to be asked for a result of the step.
  /// @param was_interrupted an attempt began before the run was interrupted: the attempt is
  /// continued rather than replaced by another machine's result
  bool may_be_remote(const StepSpec& step, bool was_interrupted) const;
  /// Downloads another machine's result, which then is a result of this machine, too.
  async::Task<std::optional<store::CacheEntry>> fetch_remote(const StepSpec& step,
                                                             const StepKey& key);

  /// Downloads those of a successful step's outputs that this machine lacks. Returns the remote
  /// cache's name; empty if the cache does not have the same outputs.
  async::Task<std::string> download_again(const StepSpec& step, std::string key,
                                          std::vector<store::OutputRecord> outputs);

  /// Returns true if the step's result is sent to the remote cache. A driver on another machine
  /// takes the run's own results from there, even if nothing else may be reused.
  bool shares_result(const StepSpec& step) const {
    return exchange_ && (step.cache || options_.wait_until_persisted);
  }
  /// Returns true for results from before the run's interruption, which may not have been sent.
  bool may_be_unsent(const StepSpec& step, const store::CacheEntry& entry) const {
    return options_.resume && entry.run == options_.run_id && shares_result(step);
  }
  /// Sends the result concurrently with the steps; conclude() reports failures.
  async::Task<> send(store::CacheEntry entry) { return exchange_->publish(std::move(entry)); }
  /// Returns true if the step publishes outputs, under names that machines share.
  bool shares_names(const StepSpec& step) const { return exchange_ && !step.publish.empty(); }
  /// Publishes outputs under the names that the step gives them, concurrently with the steps.
  async::Task<> publish_names(const StepSpec& step, std::string run,
                              std::vector<store::OutputRecord> outputs) {
    return exchange_->publish_names(step, std::move(run), std::move(outputs));
  }
  /// Returns false if publishing an output under a name has failed.
  bool has_published() const { return !exchange_ || !exchange_->lacks_names(); }

  /// Publishes the outputs of a successful attempt, and removes its remains once no driver of the
  /// run can need them.
  async::Task<> publish_and_clean_up(const StepSpec& step, store::CacheEntry entry,
                                     std::function<void()> cleanup);
  /// Calls `cleanup` after a failed attempt, once `options.wait_until_persisted` permits it.
  async::Task<> clean_up(std::function<void()> cleanup);
  /// Reports which results could not be sent.
  void conclude() {
    if (exchange_) exchange_->conclude();
  }

  /// Returns true if the step may take a result of another run.
  bool may_be_reused(const StepSpec& step) const {
    return options_.use_cache && step.cache && !is_forced(step);
  }
  /// Returns true if the step may take a result of another machine, whose age is not known.
  bool may_be_downloaded(const StepSpec& step) const {
    return may_be_reused(step) && !step.cache_max_age;
  }
  /// Returns true if the result is older than the step's `cache.max_age`.
  bool is_too_old(const StepSpec& step, const store::CacheEntry& entry);
  /// Returns true for a step that the user's options force to run.
  bool is_forced(const StepSpec& step) const { return engine::is_forced(forced_, step); }

 private:
  const PipelineSpec& pipeline_;
  store::RunStore& store_;
  store::ArtifactStore& artifacts_;
  const EngineOptions& options_;
  const std::set<std::string_view> forced_;
  StepKeys keys_;
  std::optional<CacheExchange> exchange_;
  bool has_any_ = true;  ///< The run store may have results.
};

}  // namespace pipeline::engine
