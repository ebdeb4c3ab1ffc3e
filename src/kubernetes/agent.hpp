/// @file
/// The programs for pods, as bytes: what starts a step's command (agent/main.cpp), and what carries
/// its files (stager/main.cpp).
#pragma once

#include <string_view>

namespace pipeline::kubernetes {

/// Executables for this machine's kind of processor, which need no library.
std::string_view agent_program();
std::string_view stager_program();

}  // namespace pipeline::kubernetes
