/// @file
/// The services beside a step in its pod: all containers of the pod see a folder in which each
/// service that is ready has a file of its name, and an ended step the file `ended_file`.
#pragma once

namespace pipeline::agent {

inline constexpr const char* ended_file = ".ended";

/// Runs a check of a service in its container: `port PORT [PATH]`, see look_if_ready(), or `run
/// PROGRAM [ARGUMENT...]`. Creates the file if it ends with 0. Returns its exit code.
int probe_service(const char* file, char** check);

/// Returns 1 if the folder's step has ended, so that its services are to end, too; else 0.
int look_if_needed(const char* folder);

/// Returns once so many services are ready, or false once SIGTERM is pending.
/// @param signals descriptor that becomes readable by SIGTERM; other signals are dropped
bool wait_for_services(const char* folder, int count, int signals);

/// Records that the step has ended.
void end_services(const char* folder);

}  // namespace pipeline::agent
