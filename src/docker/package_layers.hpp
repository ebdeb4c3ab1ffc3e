/// @file
/// How the locked packages of an environment are put into the layers of its image.
#pragma once

#include <vector>

#include "lock/locked_environment.hpp"

namespace pipeline::docker {

/// Returns the packages of each layer, the first one below all others; no layer is empty. A heavy
/// package has a layer of its own, the heaviest first, so that environments which share heavy
/// packages share their layers, and a light package is added without a change of those. Packages
/// without a hash, which no two machines make equal, are the last layer.
std::vector<std::vector<lock::LockedPackage>> package_layers(
    const lock::LockedEnvironment& environment);

}  // namespace pipeline::docker
