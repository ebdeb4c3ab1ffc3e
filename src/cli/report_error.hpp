/// @file
/// Converts exceptions to messages, JSON and exit codes.
#pragma once

#include <exception>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "cli/text.hpp"
#include "core/diagnostic.hpp"
#include "core/error.hpp"

namespace pipeline::cli {

/// The user stopped the command by a signal; everything has been reported already.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

struct ErrorReport {
  core::ExitCode code;
  std::string text;  ///< Message for the user, lines with their line ends; may be empty.
};

ErrorReport report_error(const std::exception_ptr& error, const Paint& paint);

/// Returns an error or a warning: `{code, severity, message, line, column, notes, suggestion}`.
nlohmann::json diagnostic_json(const core::Diagnostic& diagnostic);

/// `{"event":"error","kind":...,"message":...,"exit_code":...,"advice":[...],"details":[...],"diagnostics":[...]}`,
/// of which each has its `file`, too
nlohmann::json error_json(const std::exception_ptr& error);

/// Writes the message to standard error and, if `is_json`, the object to standard output.
core::ExitCode write_error(const std::exception_ptr& error, bool is_json);

}  // namespace pipeline::cli
