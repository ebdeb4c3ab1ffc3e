/// @file
/// What this very program was started with.
#pragma once

#include <pipeline/spec.hpp>

namespace pipeline::core {

/// The executable, its shared libraries and the dynamic loader, as the loader found them when it
/// started this process. To be asked early: what has been loaded since, by dlopen, is among them.
Program running_program();

}  // namespace pipeline::core
