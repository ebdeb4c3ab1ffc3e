/// @file
/// Exceptions of libraries that the operating system causes: refused calls, exhausted limits.
#pragma once

namespace pipeline::async {

/// Rethrows the exception that is being handled: as an EnvironmentError if a system call failed or
/// memory is exhausted, otherwise unchanged. Must be called in an exception handler.
[[noreturn]] void rethrow_as_environment_error();

}  // namespace pipeline::async
