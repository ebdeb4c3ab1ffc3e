#include "engine/run/output_recovery.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/scope_guard.hpp"

namespace pipeline::engine {

async::Task<> OutputRecovery::make_again(model::StepIndex i, const DamagedInput& damaged,
                                         const std::string& reason) {
  if (const auto found = running_.find(i); found != running_.end()) {
    const auto ended = found->second;
    co_await ended->wait();
    co_return;
  }
  auto& artifacts = context_.services.artifacts;
  if (std::ranges::all_of(steps_[i].outputs, [&](const store::OutputRecord& output) {
        return artifacts.is_kept(output.digest);
      }))
    co_return;
  const auto ended = std::make_shared<async::Gate>(context_.executor);
  running_.emplace(i, ended);
  const core::ScopeGuard at_end([&] {
    steps_[i].runs_again = false;
    running_.erase(i);
    ended->open();
  });
  const auto& name = steps_.spec(i).name;
  const auto from = co_await download_(i);
  if (!from.empty()) {
    context_.events.emit(
        event::Notice{name, "outputs downloaded again from " + from + ", " + reason});
    co_return;
  }
  context_.events.emit(event::Notice{name, "runs again, " + reason});
  steps_[i].runs_again = has_rerun_any_ = true;
  co_await run_step_(i);
  steps_.refresh_loops();
  if (steps_[i].status != StepStatus::succeeded)
    throw core::EnvironmentError(
        std::string(damaged.what()) + ", and '" + name + "' could not make it again",
        damaged.advice());
}

async::Task<bool> OutputRecovery::restore_inputs(model::StepIndex i) {
  std::vector<std::pair<std::string, model::StepIndex>> removed;
  for (const auto& input : steps_.spec(i).inputs)
    for (const auto& source : input.sources)
      if (const auto* output = steps_.outputs_of()(source).output;
          output && output->temp && !context_.services.artifacts.is_known(output->digest))
        removed.emplace_back(source.step + "." + source.output, steps_.index_of(source.step));
  // Several outputs are made concurrently; restore() then waits for those in progress.
  for (const auto& [output, producer] : removed)
    if (removed.size() > 1) context_.tasks.spawn(try_restore(output, producer, i));
  for (const auto& [output, producer] : removed) co_await restore(output, producer, i);
  co_return !removed.empty();
}

/// Makes a removed temporary output again.
/// @param output `STEP.OUTPUT`, an output of the step `i`
/// @param reader the step that needs the output
async::Task<> OutputRecovery::restore(std::string output, model::StepIndex i,
                                      model::StepIndex reader) {
  const DamagedInput gone("the temporary output '" + output + "' was removed", {},
                          steps_.spec(i).name);
  const auto reason = "because '" + steps_.spec(reader).name + "' needs its temporary output";
  const auto has_failed = [&] {  // Cancelled: the run ends with its first failure.
    return steps_[i].status == StepStatus::failed || steps_[i].status == StepStatus::cancelled;
  };
  if (!has_failed()) co_await make_again(i, gone, reason);
  if (has_failed())
    throw core::EnvironmentError(std::string(gone.what()) + ", and could not be made again");
}

/// Does what restore() does, but ignores a failure: restore_inputs() reports it.
async::Task<> OutputRecovery::try_restore(std::string output, model::StepIndex i,
                                          model::StepIndex reader) {
  try {
    co_await restore(std::move(output), i, reader);
  } catch (const core::EnvironmentError&) {
  }
}

}  // namespace pipeline::engine
