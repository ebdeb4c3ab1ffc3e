/// @file
/// The failures that `retry.on` and `retry.never` name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <pipeline/events.hpp>

namespace pipeline::settings {

/// Exactly one member is set.
struct FailurePattern {
  std::optional<int> exit_code;  ///< `exit 75`
  std::optional<int> signal;     ///< `signal 9`
  std::optional<FailureKind> kind;
  std::string text;  ///< A text in the step's output or in the failure's message.
};

/// Parses an item of `retry.on`; returns nothing for a text that names no failure which can be
/// retried.
std::optional<FailurePattern> parse_failure(std::string_view text);

/// Returns the probable intention behind a text that parse_failure() rejects.
std::string nearest_failure(std::string_view text);

}  // namespace pipeline::settings
