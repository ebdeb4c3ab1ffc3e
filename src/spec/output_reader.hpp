/// @file
/// Reads the outputs of a step.
#pragma once

#include <pipeline/spec.hpp>

#include "core/identifier.hpp"
#include "core/value.hpp"
#include "settings/formats.hpp"
#include "settings/settings.hpp"

namespace pipeline::spec {

/// The name of an input, an output or a parameter.
inline constexpr settings::Format slot_name{
    "a name of letters, digits, `_` and `-` that begins with a letter", [](std::string_view text) {
      return core::is_name(text) && text.find('.') == std::string_view::npos &&
             !(text[0] >= '0' && text[0] <= '9');
    }};

/// Reads a list of names, or a map of names to file names or to `{file: NAME, metrics: true}`.
/// Reports errors; an output with a wrong name is added under the name that was probably meant, so
/// that references to it are not errors, too.
void read_outputs(const core::Value& value, StepSpec& step, settings::Diagnostics& diagnostics);

/// Reports a `publish_to` that gets no copies or is a file, one to which several steps, or the
/// rounds or instances that a run makes of a step, would write the same files, and one whose copies
/// would replace files that the pipeline reads.
/// @param sources the files that the pipeline was read from
void check_result_folders(const std::vector<StepSpec>& steps,
                          const std::vector<std::filesystem::path>& sources,
                          settings::Diagnostics& diagnostics);

/// Reports temporary outputs that something needs besides the inputs of steps.
void check_temporary(const std::vector<StepSpec>& steps, settings::Diagnostics& diagnostics);

}  // namespace pipeline::spec
