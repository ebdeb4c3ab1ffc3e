/// @file
/// The programs that run in pods, embedded as bytes: the agent, which starts a step's command
/// (agent/main.cpp), and the stager, which transfers its files (stager/main.cpp).
#pragma once

#include <string_view>

namespace pipeline::kubernetes {

/// Static executables for this machine's processor architecture.
std::string_view agent_program();
/// Throws EnvironmentError if `pipe` was built without it.
std::string_view stager_program();

}  // namespace pipeline::kubernetes
