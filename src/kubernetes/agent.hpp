/// @file
/// The program that starts a step's command in its pod (agent/main.cpp), as bytes.
#pragma once

#include <string_view>

namespace pipeline::kubernetes {

/// An executable for this machine's kind of processor, which needs no library.
std::string_view agent_program();

}  // namespace pipeline::kubernetes
