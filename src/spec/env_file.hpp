/// @file
/// `.env` beside a pipeline file: values of the variables and secrets that its steps declare.
#pragma once

#include <filesystem>
#include <string_view>

#include <pipeline/spec.hpp>

namespace pipeline::spec {

/// Parses lines `NAME=VALUE`, also with `export` before them. A value is a word, or a text in
/// single or double quotes, which may go over several lines; in double quotes, `\n`, `\t`, `\"`,
/// `\\` and `\$` are escapes. `#` begins a comment. References such as `${HOME}` are errors.
/// @param file for messages, which never contain a value. Throws InputError with every wrong line.
StringMap parse_env(std::string_view text, const std::filesystem::path& file);

/// Returns true if a variable of the step takes its value from the user's environment or `.env`.
bool takes_users_variables(const StepSpec& step);

}  // namespace pipeline::spec
