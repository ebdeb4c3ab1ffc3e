/// @file
/// Distributes the locked packages of an environment over the layers of its image.
#pragma once

#include <string>
#include <vector>

#include "docker/build_log.hpp"
#include "docker/image_plan.hpp"

namespace pipeline::docker {

/// Returns the packages of each layer, the lowest layer first; no layer is empty. Each heavy
/// package has a layer of its own, the heaviest at the bottom: environments with the same heavy
/// packages share these layers, and adding a light package does not change them. Packages without a
/// hash are the top layer, because their files differ on each machine.
PackageLayers package_layers(const lockfile::LockedEnvironment& environment);

/// Returns the value of the label `pipe.packages`: `six==1.16.0 8abb...` for each package of each
/// layer.
std::string layers_to_label(const PackageLayers& layers);
/// Reads the value of the label `pipe.packages`.
PackageLayers layers_of_label(const std::string& label);

/// Returns the titles of the layers, the lowest layer first.
std::vector<LayerTitle> layer_titles(const PackageLayers& layers);

/// Returns which packages differ, for users: `added tabulate 0.9.0, changed numpy 1.26.4 -> 2.0.0,
/// removed six`. If `before` is empty, returns the number of packages.
std::string describe_packages(const lockfile::LockedEnvironment& before,
                              const lockfile::LockedEnvironment& after);

/// Returns the differences, for users: `added tabulate 0.9.0, changed numpy 1.26.4 -> 2.0.0,
/// removed six; 35 KiB to download, 1 of 3 layers to make`.
/// @param before empty for a new environment
/// @param all_again all layers are made again, because the image below them has changed
std::string describe_layers(const PackageLayers& before, const PackageLayers& after,
                            bool all_again = false);

}  // namespace pipeline::docker
