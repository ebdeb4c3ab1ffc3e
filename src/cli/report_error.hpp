/// @file
/// Converts exceptions to messages for the terminal and exit codes.
#pragma once

#include <exception>
#include <string>

#include "cli/text.hpp"
#include "core/error.hpp"

namespace pipeline::cli {

struct ErrorReport {
  core::ExitCode code;
  std::string text;  ///< Message for the user, with line ends; may be empty.
};

ErrorReport report_error(const std::exception_ptr& error, const Paint& paint);

/// Writes the message to standard error and, if `is_json`, the error as JSON to standard output.
/// Returns the exit code.
core::ExitCode write_error(const std::exception_ptr& error, bool is_json);

}  // namespace pipeline::cli
