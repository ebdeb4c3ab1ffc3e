/// @file
/// Resolves the names and options of the user to steps, with the steps that these depend on.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <pipeline/spec.hpp>

namespace pipeline::engine {

/// Returns the indices of the steps called `name`: `train` (all of its instances, if it has a
/// matrix), `train[c=1]`, `train[0]`, `train.c-1`. Throws InputError, with the likely name, if
/// there is none.
std::vector<std::size_t> steps_called(const PipelineSpec& pipeline, const std::string& name);

/// Returns the indices of the steps that `only_step` depends on, and of itself, in the file's
/// order; all steps if it is empty. The name is interpreted as by steps_called().
std::vector<std::size_t> select_steps(const PipelineSpec& pipeline, const std::string& only_step);

/// Returns the names of the steps that run although they have a result: those called by one of
/// `force` or `from`, and the steps that depend on the latter. Throws InputError for an unknown
/// name.
std::set<std::string_view> forced_steps(const PipelineSpec& pipeline,
                                        const std::vector<std::string>& force,
                                        const std::vector<std::string>& from);

/// Returns true if the step, or the step that it is an instance of, is one of forced_steps().
inline bool is_forced(const std::set<std::string_view>& forced, const StepSpec& step) {
  return forced.contains(step.name) || (step.instance && forced.contains(*step.instance->of));
}

/// Returns for each of `selected` the positions in `selected` of the steps that it depends on. A
/// step with a `run_on` also waits for those that it depends on indirectly: one of them may fail
/// when the step in between is skipped already.
std::vector<std::vector<std::uint32_t>> needs_of(const PipelineSpec& pipeline,
                                                 const std::vector<std::size_t>& selected);

}  // namespace pipeline::engine
