/// @file
/// Errors whose cause is not the user's input, and the exit codes of the program.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace pipeline::core {

enum class ExitCode : int {
  ok = 0,
  step_failed = 1,
  bad_input = 2,    ///< The user's file or options are invalid.
  environment = 3,  ///< For example no engine, a full disk, a missing permission.
  build_failed = 4,
  interrupted = 130,
};

/// An operation of the system or of a service failed. The error has a message and advice.
class EnvironmentError : public std::runtime_error {
 public:
  /// @param message what was tried, on which object, and the result, in one line
  /// @param advice  what the user can do, one line each
  explicit EnvironmentError(const std::string& message, std::vector<std::string> advice = {})
      : runtime_error(message), advice_(std::move(advice)) {}
  const std::vector<std::string>& advice() const { return advice_; }

 private:
  std::vector<std::string> advice_;
};

/// A file or folder cannot be stored as an artifact, or has changed while it was read.
class ContentError : public EnvironmentError {
 public:
  using EnvironmentError::EnvironmentError;
};

/// An image or a virtual environment could not be built.
class BuildError : public EnvironmentError {
 public:
  /// @param details the failing line of the Dockerfile and the last lines of its output
  BuildError(const std::string& message, std::vector<std::string> details,
             std::vector<std::string> advice)
      : EnvironmentError(message, std::move(advice)), details_(std::move(details)) {}
  const std::vector<std::string>& details() const { return details_; }

 private:
  std::vector<std::string> details_;
};

/// Returns the error of a failed system call, with the message `WHAT: strerror(error_number)`. The
/// error has advice for a full disk, a used quota, missing permissions, a read-only file system and
/// lack of memory.
[[nodiscard]] EnvironmentError system_error(const std::string& what, int error_number);

}  // namespace pipeline::core
