/// @file
/// Asks a person whether a step with `wait` may begin.
#pragma once

#include <optional>

#include "async/task.hpp"
#include "engine/run_context.hpp"

namespace pipeline::engine {

/// Asks the question of a step with `wait`, and waits for the answer, without a job slot, GPU or
/// container. Returns at once for a step without a question.
/// @return the failure of a step that was rejected; nothing if it may begin, or `stop` is stopped
async::Task<std::optional<Failure>> ask_person(const RunContext& context, const StepSpec& step,
                                               core::CancelSource& stop);

}  // namespace pipeline::engine
