/// @file
/// Artifacts that are elsewhere: only a remote store has them, and this machine has noted where
/// (model/elsewhere.hpp). Decides which outputs of a run may stay there, and which of the noted
/// artifacts the run can take from there.
#pragma once

#include <string>
#include <vector>

#include <pipeline/spec.hpp>

#include "engine/services.hpp"
#include "engine/types.hpp"

namespace pipeline::engine {

/// Returns true if an output may stay in the remote store alone: its step is cached and has no
/// nodes, and the engine itself does not read, copy or publish the output.
bool may_stay_elsewhere(const PipelineSpec& pipeline, const StepSpec& step,
                        const std::string& output);

/// Returns the step's outputs as an attempt declares them to the orchestrator.
std::vector<orchestrators::AttemptOutput> attempt_outputs(const PipelineSpec& pipeline,
                                                          const StepSpec& step);

/// Notes an output that an attempt has left in the remote store, and adds its record to the
/// outcome. Returns false, and does nothing, for an output on this machine.
bool take_elsewhere(store::ArtifactStore& artifacts, const OutputSpec& output,
                    AttemptOutcome& outcome);

/// Adds the record of an output that was stored on this machine to the outcome.
void add_stored(const OutputSpec& output, const store::StoredArtifact& stored,
                AttemptOutcome& outcome);

/// Returns true if the run can use this output of an earlier run: it is whole on this machine, or
/// it is in the run's remote store and may stay there.
bool is_at_hand(const Services& services, const StepSpec& step, const store::OutputRecord& output);

}  // namespace pipeline::engine
