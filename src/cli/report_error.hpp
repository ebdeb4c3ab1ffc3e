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
  std::string text;  ///< Message for the user, lines with their line ends; may be empty.
};

ErrorReport report_error(const std::exception_ptr& error, const Paint& paint);

/// Writes the message to standard error and, if `is_json`, the object to standard output.
core::ExitCode write_error(const std::exception_ptr& error, bool is_json);

}  // namespace pipeline::cli
