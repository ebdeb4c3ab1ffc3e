/// @file
/// The programs that run in containers, embedded as bytes: the agent, which starts a step's command
/// (agent/main.cpp), and the stager, which transfers its files (stager/main.cpp).
#pragma once

#include <string_view>

namespace pipeline::agent {

/// The processor architecture that `pipe` was compiled for, as in the node label
/// `kubernetes.io/arch`.
#if defined(__aarch64__)
inline constexpr std::string_view own_architecture = "arm64";
#else
inline constexpr std::string_view own_architecture = "amd64";
#endif

/// Returns a static executable for nodes of `architecture`. Throws EnvironmentError if `pipe` was
/// built without it: releases support amd64 and arm64, other builds only the machine's own
/// architecture.
std::string_view agent_program(std::string_view architecture = own_architecture);
/// Returns the stager's executable, as agent_program() returns the agent's.
std::string_view stager_program(std::string_view architecture = own_architecture);

/// Gives back the memory that reading and copying the programs has filled. They stay valid: the
/// system reads them from the file of `pipe` again.
void release_program_pages();

}  // namespace pipeline::agent
