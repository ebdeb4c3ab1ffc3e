/// @file
/// Distributes the locked packages of an environment over the layers of its image.
#pragma once

#include <string>
#include <vector>

#include "docker/build_log.hpp"
#include "docker/image_plan.hpp"

namespace pipeline::docker {

/// Returns the packages of each layer, the first one below all others; no layer is empty. A heavy
/// package has a layer of its own, the heaviest first, so that environments which share heavy
/// packages share their layers, and a light package is added without a change of those. Packages
/// without a hash, which no two machines make equal, are the last layer.
PackageLayers package_layers(const lockfile::LockedEnvironment& environment);

/// Returns the value of the label `pipe.packages` and reads it: `six==1.16.0 8abb...` for each
/// package of each layer.
std::string layers_to_label(const PackageLayers& layers);
PackageLayers layers_of_label(const std::string& label);

std::vector<LayerTitle> layer_titles(const PackageLayers& layers);

/// Returns which packages differ, for users: `added tabulate 0.9.0, changed numpy 1.26.4 -> 2.0.0,
/// removed six`; their number if there were none before.
std::string describe_packages(const lockfile::LockedEnvironment& before,
                              const lockfile::LockedEnvironment& after);

/// Returns the differences, for users: `added tabulate 0.9.0, changed numpy 1.26.4 -> 2.0.0,
/// removed six; 35 KiB to download, 1 of 3 layers made again`.
/// @param before is empty for a new environment
/// @param all_again all layers are made again, since the image below them has changed
std::string describe_layers(const PackageLayers& before, const PackageLayers& after,
                            bool all_again);

}  // namespace pipeline::docker
