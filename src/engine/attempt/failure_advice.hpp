/// @file
/// Advice for steps that failed because of how their code was written or copied.
#pragma once

#include <string_view>

#include "engine/run.hpp"

namespace pipeline::engine {

/// Adds what the user can do about the failure, if the step's files or its log show the cause.
/// @param log the last lines that the step has printed
void advise(const StepSpec& step, const CodeProvider& code, std::string_view log, Failure& failure);

}  // namespace pipeline::engine
