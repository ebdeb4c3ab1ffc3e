/// @file
/// Names that are safe as path components, labels and shell words, and identifiers that sort by
/// time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pipeline::core {

/// Returns true for letters, digits, `_`, `-`, `.`, beginning with a letter or digit, of at most
/// 128 bytes: a path component that cannot be `..`, an option or an escape sequence.
bool is_name(std::string_view text);
/// Returns true for a variable's name: `[A-Za-z_][A-Za-z0-9_]*`.
bool is_variable_name(std::string_view text);
/// Returns true if the text has a byte below 0x20 or 0x7f. Such text must not reach a Dockerfile,
/// an HTTP header or a terminal.
bool has_control_characters(std::string_view text);

/// Returns `20261121-081500-7f3a9c`: the UTC time, then 30 bits of `random` in Crockford's base 32.
/// At 100 runs a second, two identifiers are equal once in 60 hours.
/// @param unix_milliseconds the time since 1970
std::string make_run_id(std::int64_t unix_milliseconds, std::uint32_t random);

/// Returns `PIPE_INPUT_DATA_SET` for the prefix `PIPE_INPUT_` and the name `data-set`.
std::string variable_name(std::string_view prefix, std::string_view name);

/// Returns `PIPE_PARAM_lr_max` for the prefix `PIPE_PARAM_` and the name `lr-max`: the alternative
/// that keeps the name's case.
std::string same_case_variable_name(std::string_view prefix, std::string_view name);

/// Returns the text as one word for a POSIX shell, in single quotes where needed.
std::string shell_quote(std::string_view text);

}  // namespace pipeline::core
