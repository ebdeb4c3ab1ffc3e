/// @file
/// Exceptions of libraries for which the system is to blame: refused calls, exhausted limits.
#pragma once

namespace pipeline::async {

/// Within a handler: throws what is handled, as an EnvironmentError if the system lacked something
/// or refused a call.
[[noreturn]] void rethrow_as_environment_error();

}  // namespace pipeline::async
