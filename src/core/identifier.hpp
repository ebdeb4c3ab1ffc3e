/// @file
/// Names that are safe as path components, labels and shell words, and identifiers that sort by
/// time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pipeline::core {

/// Letters, digits, `_`, `-`, `.`; begins with a letter or digit; at most 128 bytes: a path
/// component that can be no `..`, option or escape.
bool is_name(std::string_view text);
/// A variable's name: `[A-Za-z_][A-Za-z0-9_]*`.
bool is_variable_name(std::string_view text);
/// True if there is any byte below 0x20 or 0x7f in it: such text reaches no Dockerfile, header or
/// terminal.
bool has_control_characters(std::string_view text);

/// `20261121-081500-7f3a9c`: the UTC time, then 24 bits of `random`. @param unix_milliseconds the
/// time since 1970
std::string make_run_id(std::int64_t unix_milliseconds, std::uint32_t random);

/// `data-set` -> `PIPE_INPUT_DATA_SET` with the prefix `PIPE_INPUT_`.
std::string variable_name(std::string_view prefix, std::string_view name);

/// `lr-max` -> `PIPE_PARAM_lr_max` with the prefix `PIPE_PARAM_`: the other spelling, with the
/// name's own letters.
std::string same_case_variable_name(std::string_view prefix, std::string_view name);

/// The text as one word for a POSIX shell, in single quotes where it needs them.
std::string shell_quote(std::string_view text);

}  // namespace pipeline::core
