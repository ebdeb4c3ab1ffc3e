/// @file
/// Asks a person whether a step with `wait` may begin.
#pragma once

#include <optional>

#include "async/task.hpp"
#include "engine/run_context.hpp"

namespace pipeline::engine {

/// Waits for the answer, without a job slot, GPU or container.
/// @return the failure of a step that was rejected; nothing if it may begin, or `stop` is stopped
async::Task<std::optional<Failure>> ask(const RunContext& context, const StepSpec& step,
                                        core::CancelSource& stop);

}  // namespace pipeline::engine
