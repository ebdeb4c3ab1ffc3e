/// @file
/// Packages of PyPI in the form of a lock file, and images that are built from them. A package's
/// size in the lock need not be the real one, so that a test decides which packages are heavy.
#pragma once

#include <map>

#include <nlohmann/json.hpp>

#include "docker/package_lock.hpp"
#include "engine/image_support.hpp"
#include "settings/settings.hpp"

namespace pipeline::docker {

/// Returns the entry of a package in a lock; its hash is that of the wheel on PyPI.
/// @param size bytes; layers of images depend on it
inline lockfile::LockedPackage locked(const std::string& name, const std::string& version,
                                      std::uint64_t size = 50'000) {
  static const std::map<std::string, std::string> hashes{
      {"six-1.16.0", "8abb2f1d86890a2dfb989f9a77cfcfd3e47c2a354b01111771326f8aa26e0254"},
      {"six-1.17.0", "4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274"},
      {"tabulate-0.9.0", "024ca478df22e9340661486f85298cff5f6dcdba14f3813e8830015b9ed1948f"},
      {"tabulate-0.8.10", "0ba055423dbaa164b9e456abe7920c5e8ed33fcc16f6d1b2f2d152c8e1e8b4fc"},
      {"colorama-0.4.6", "4f1d9991f5acc0ca119f9d443620b77f9d6b33703e51011c16baf57afb285fc6"},
      {"toolz-0.12.1", "d22731364c07d72eea0a0ad45bafb2c2937ab6fd38a3507bf55eae8744aa7d85"},
      {"click-8.1.7", "ae74fb96c20a0277a1d615f1e4d73c8414f5a98db8b799a7931d1582f3390c28"}};
  return {.name = name,
          .version = version,
          .file = name + "-" + version + ".whl",
          .size = size,
          .sha256 = hashes.at(name + "-" + version)};
}

/// Sizes in bytes with which a package gets a layer of its own.
constexpr std::uint64_t heavy = 20'000'000;
constexpr std::uint64_t heavier = 30'000'000;

class LayersTest : public ImageTest {
 protected:
  /// Builds an image with these packages from a lock, and returns its status.
  ImageStatus build_locked(std::vector<lockfile::LockedPackage> packages,
                           DockerSettings settings = {}) {
    lockfile::LockedEnvironment environment;
    environment.packages = std::move(packages);
    settings.requirements = {"whatever"};
    // The label makes the image different from equal images of other tests, which remove theirs.
    settings.build_config.build_options.labels["pipe.test"] = repository;
    auto asked = step("train", std::move(settings));
    lockfile::LockRequest request;
    request.parent =
        asked.settings->docker.parent_image.value_or(std::string(settings::default_parent_image));
    request.parent_digest = ensure(without_packages(asked)).digest;
    const auto installer = asked.settings->docker.python_package_installer;
    request.installer = installer == PackageInstaller::pip ? "pip" : "uv";
    request.requirements = {"whatever"};
    file.put(request, std::move(environment));
    options.lock = &file;
    return ensure(asked);
  }
  lockfile::LockFile file{{}};  ///< Only in memory, because it has no path.

  /// Returns the diff_ids of the layers that the image adds to those of its parent.
  std::vector<std::string> layers(const ImageStatus& image,
                                  const std::string& parent = "python:3.11-slim-bookworm") {
    const auto all_layers = [&](const std::string& name) {
      const auto found = wait(engine->inspect_image(name));
      if (!found) throw std::runtime_error("the image " + name + " is gone");
      return found->at("RootFS").at("Layers").get<std::vector<std::string>>();
    };
    auto added = all_layers(image.image_id);
    const auto inherited = static_cast<std::ptrdiff_t>(all_layers(parent).size());
    added.erase(added.begin(), added.begin() + inherited);
    return added;
  }
};

}  // namespace pipeline::docker
