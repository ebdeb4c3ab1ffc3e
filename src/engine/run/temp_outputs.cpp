#include "engine/run/temp_outputs.hpp"

#include <algorithm>

#include "async/on_pool.hpp"
#include "async/sleep.hpp"
#include "core/error.hpp"
#include "core/log.hpp"

namespace pipeline::engine {
namespace {

/// Returns true if a step of this status has its outputs, and so needs its inputs no longer.
bool has_outputs(StepStatus status) {
  return status == StepStatus::succeeded || status == StepStatus::cached;
}

}  // namespace

TempOutputs::TempOutputs(const RunContext& context, RunSteps& steps, Journal& journal,
                         Results& results)
    : context_(context),
      steps_(steps),
      journal_(journal),
      results_(results),
      has_any_(std::ranges::any_of(context.services.pipeline.steps, [](const StepSpec& step) {
        return std::ranges::any_of(step.outputs, &OutputSpec::temp);
      })) {}

void TempOutputs::step_ended(model::StepIndex i) {
  if (!has_any_) return;
  index();
  const auto outputs_of = steps_.outputs_of();
  for (const auto& input : steps_.spec(i).inputs)
    for (const auto& source : input.sources) {
      const auto made = outputs_of(source);
      // An output that is uploaded to the remote cache is needed until the end of the run.
      if (!made.output || !made.output->temp || results_.shares_result(*made.step) ||
          is_needed({source.step, source.output}, SkippedSteps::may_run))
        continue;
      drop(steps_.index_of(source.step), source.output);
    }
  if (!dropped_.empty() && !std::exchange(is_removal_scheduled_, true))
    context_.tasks.spawn(remove_soon());
}

async::Task<> TempOutputs::run_ended(bool succeeded) {
  if (!has_any_) co_return;
  const auto skipped = succeeded ? SkippedSteps::are_done : SkippedSteps::may_run;
  index();
  for (const auto& [source, readers] : readers_)
    if (const auto i = steps_.index_of(source.first);
        has_outputs(steps_[i].status) && !is_needed(source, skipped))
      drop(i, source.second);
  if (!dropped_.empty()) co_await remove(skipped);
}

/// Notes which steps take each output, if steps were added since the last call.
void TempOutputs::index() {
  if (std::exchange(indexed_, steps_.size()) == steps_.size()) return;
  readers_.clear();
  for (model::StepIndex i = 0; i < steps_.size(); ++i)
    for (const auto& input : steps_.spec(i).inputs)
      for (const auto& source : input.sources) readers_[{source.step, source.output}].push_back(i);
}

/// Returns true if a step still needs the output.
bool TempOutputs::is_needed(const Source& source, SkippedSteps skipped) const {
  return std::ranges::any_of(readers_.at(source), [&](auto reader) {
    const auto status = steps_[reader].status;
    return steps_[reader].runs_again ||
           (!has_outputs(status) &&
            (status != StepStatus::skipped || skipped == SkippedSteps::may_run));
  });
}

/// Adds the output's artifact to those to remove.
void TempOutputs::drop(model::StepIndex i, const std::string& output) {
  for (const auto& made : steps_[i].outputs)
    if (made.name == output && made.temp && context_.services.artifacts.is_known(made.digest))
      dropped_.push_back(made.digest);
}

/// Removes the dropped artifacts after a moment, together with those that are dropped meanwhile.
async::Task<> TempOutputs::remove_soon() {
  co_await async::sleep(std::chrono::milliseconds(100), &context_.user_stop);
  is_removal_scheduled_ = false;
  co_await remove(SkippedSteps::may_run);
}

/// Returns the artifacts of the temporary outputs that some step still needs: equal content of
/// several outputs is one artifact.
std::set<core::Digest> TempOutputs::needed(SkippedSteps skipped) {
  index();
  std::set<core::Digest> needed;
  for (const auto& [source, readers] : readers_)
    if (is_needed(source, skipped))
      for (const auto& made : steps_[steps_.index_of(source.first)].outputs)
        if (made.name == source.second) needed.insert(made.digest);
  return needed;
}

/// Removes the dropped artifacts that nothing needs any more, unless another run is in progress.
async::Task<> TempOutputs::remove(SkippedSteps skipped) {
  auto dropped = std::exchange(dropped_, {});
  auto& store = context_.services.store;
  journal_.flush();
  for (const auto& run : store.runs().running())
    if (run.id != journal_.run_id()) co_return;
  auto kept = needed(skipped);
  for (const auto& digest : store.referenced_artifacts(store::TempArtifacts::left_out))
    kept.insert(digest);
  std::erase_if(dropped, [&](const core::Digest& digest) { return kept.contains(digest); });
  try {
    // Here and not on the pool, so that no step records an output in between. The pool removes the
    // content, which may be large.
    auto removed = context_.services.artifacts.remove(dropped);
    co_await async::on_pool(context_.pool, [&] { removed.reset(); });
  } catch (const core::EnvironmentError& error) {
    core::log::warn(error.what());
  }
}

}  // namespace pipeline::engine
