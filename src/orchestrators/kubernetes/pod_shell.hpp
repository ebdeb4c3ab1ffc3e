/// @file
/// Connects pods with the user's terminal, and runs commands beside the step in a running pod.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kubernetes_api/client.hpp"
#include "orchestrators/attempts.hpp"

namespace pipeline::orchestrators::kubernetes {

/// Connects this process's standard streams with those of a pod's running container, in which the
/// agent starts a shell. Returns when the container has closed its output. Throws ApiError and
/// TransportError.
async::Task<> connect_pod(kubernetes_api::Client& client, std::string pod, bool has_terminal);

/// Runs a command in the pod of a process, as AttemptRunner::join() does.
/// @param owner value of the label pipe.state
async::Task<std::optional<int>> join_pod(kubernetes_api::Client& client, std::string owner,
                                         RunningProcess process, ShellRequest shell);
/// Runs a command in the pod of a process, as AttemptRunner::ask() does.
async::Task<std::optional<std::string>> ask_pod(kubernetes_api::Client& client, std::string owner,
                                                RunningProcess process,
                                                std::vector<std::string> words);

/// Returns the exit code in the status that a server sends at the end of a command; nothing if the
/// command was not run.
std::optional<int> code_in_status(std::string_view status);

}  // namespace pipeline::orchestrators::kubernetes
