/// @file
/// The services beside a step in its pod. All containers of the pod share a folder: each service
/// that is ready has a file there, named like the service, and the end of the step is recorded by
/// the file `ended_file`.
#pragma once

namespace pipeline::agent {

inline constexpr const char* ended_file = ".ended";

/// Runs a check of a service in its container: `port PORT [PATH]`, see look_if_ready(), or `run
/// PROGRAM [ARGUMENT...]`. Creates the file if the check succeeds. Returns the check's exit code.
int probe_service(const char* file, char** check);

/// Returns the exit code of a service's liveness probe: 1 if the step has ended, so that the
/// cluster ends the service, else 0. @param folder the folder that the pod's containers share
int look_if_needed(const char* folder);

/// Returns true once `count` services are ready, or false once SIGTERM has arrived.
/// @param signals descriptor that becomes readable by SIGTERM; other signals are dropped
bool wait_for_services(const char* folder, int count, int signals);

/// Makes `ended_file`, so that liveness probes fail (look_if_needed()) and the cluster ends the
/// services.
void end_services(const char* folder);

}  // namespace pipeline::agent
