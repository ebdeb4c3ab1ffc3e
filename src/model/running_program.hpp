/// @file
/// The files of the running program.
#pragma once

#include <pipeline/spec.hpp>

namespace pipeline::model {

/// Returns the executable, its shared libraries and the dynamic loader, as the loader resolved them
/// when this process started. Call it early: libraries loaded later by dlopen would be included.
Program running_program();

/// Returns the offset of a function in the executable or library that contains it, in hex: the same
/// in every process of a program. Empty if neither contains it.
std::string offset_in_program(void (*function)());

}  // namespace pipeline::model
