#include "docker/package_layers.hpp"

#include <algorithm>

namespace pipeline::docker {
namespace {

/// Sizes are those of the compressed files; installed, packages are two to four times as large.
constexpr std::uint64_t heavy = 10'000'000;
constexpr std::uint64_t light = 1'000'000;

/// An image has 127 layers at most, and its parent needs some of them.
constexpr std::size_t most_heavy_layers = 40;

}  // namespace

std::vector<std::vector<lock::LockedPackage>> package_layers(
    const lock::LockedEnvironment& environment) {
  auto packages = environment.packages;
  std::ranges::stable_sort(packages, std::greater<>(), &lock::LockedPackage::size);
  std::vector<std::vector<lock::LockedPackage>> layers;
  std::vector<lock::LockedPackage> medium_ones, light_ones, without_hash;
  for (auto& package : packages) {
    if (package.sha256.empty())
      without_hash.push_back(std::move(package));
    else if (package.size >= heavy && layers.size() < most_heavy_layers)
      layers.push_back({std::move(package)});
    else
      (package.size >= light ? medium_ones : light_ones).push_back(std::move(package));
  }
  for (auto* group : {&medium_ones, &light_ones, &without_hash}) {
    std::ranges::sort(*group, {}, &lock::LockedPackage::name);
    if (!group->empty()) layers.push_back(std::move(*group));
  }
  return layers;
}

}  // namespace pipeline::docker
