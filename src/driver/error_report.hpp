/// @file
/// Converts exceptions to data for users, programs and records, and to exit codes.
#pragma once

#include <exception>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/diagnostic.hpp"
#include "core/error.hpp"

namespace pipeline::driver {

/// The user stopped the work by a signal; everything has been reported already.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

/// The data of an error, common to all kinds of exceptions.
struct ErrorFacts {
  core::ExitCode code = core::ExitCode::environment;
  const char* kind = "environment";
  std::string message;
  std::vector<std::string> details, advice;
  const core::InputError* input = nullptr;  ///< Lives as long as the exception.
};

/// Returns the data of any exception.
ErrorFacts facts_of(const std::exception_ptr& error);

/// Returns the error as `pipe` prints it, in lines with their line ends; empty for Interrupted.
std::string plain_text(const ErrorFacts& facts);

/// Returns an error or a warning: `{code, severity, message, line, column, notes, suggestion}`.
nlohmann::json diagnostic_json(const core::Diagnostic& diagnostic);

/// Returns the error as
/// `{"event":"error","kind":...,"message":...,"exit_code":...,"advice":[...],"details":[...],"diagnostics":[...]}`;
/// each diagnostic has its `file`, too.
nlohmann::json error_json(const std::exception_ptr& error);

}  // namespace pipeline::driver
