#include "orchestrators/processes/environment_packages.hpp"

#include <set>
#include <tuple>

#include "core/file.hpp"
#include "core/quantity.hpp"
#include "docker/package_layers.hpp"

namespace pipeline::orchestrators::processes {
namespace {

namespace fs = std::filesystem;

constexpr auto packages_file = ".packages";

using Files = std::set<std::tuple<std::string, std::string, std::string>>;

Files files_of(const lockfile::LockedEnvironment& environment) {
  Files files;
  for (const auto& package : environment.packages)
    files.emplace(package.name, package.version, package.sha256);
  return files;
}

/// Returns the recorded packages; none for an environment without a lock file, or one that is being
/// made.
lockfile::LockedEnvironment read_packages(const fs::path& environment) {
  lockfile::LockedEnvironment packages;
  const auto file = environment / packages_file;
  std::error_code error;
  if (!fs::exists(file, error)) return packages;
  for (auto& layer : docker::layers_of_label(core::read_file(file)))
    for (auto& package : layer) packages.packages.push_back(std::move(package));
  return packages;
}

}  // namespace

void write_packages(const fs::path& environment, const lockfile::LockedEnvironment& packages) {
  core::write_file_atomically(environment / packages_file,
                              docker::layers_to_label({packages.packages}));
}

std::string describe_new_environment(const fs::path& environments,
                                     const lockfile::LockedEnvironment& packages) {
  const auto wanted = files_of(packages);
  lockfile::LockedEnvironment nearest;
  std::size_t most = 0;
  Files known;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(environments, error)) {
    auto other = read_packages(entry.path());
    const auto files = files_of(other);
    std::size_t shared = 0;
    for (const auto& file : files) shared += wanted.contains(file);
    known.insert(files.begin(), files.end());
    // An environment with mostly other packages is not compared; it may be another pipeline's.
    if (2 * shared < files.size()) continue;
    // Prefers the environment with fewer other packages if two share equally many.
    if (shared > most ||
        (shared == most && shared > 0 && other.packages.size() < nearest.packages.size())) {
      most = shared;
      nearest = std::move(other);
    }
  }
  auto text = docker::describe_packages(nearest, packages);
  if (text.empty())
    text = "the packages of another one, for another Python, installer or variables";
  std::uint64_t bytes = 0;
  for (const auto& package : packages.packages)
    if (!known.contains({package.name, package.version, package.sha256})) bytes += package.size;
  return bytes > 0 ? text + "; " + core::format_bytes(bytes) + " to download" : text;
}

}  // namespace pipeline::orchestrators::processes
