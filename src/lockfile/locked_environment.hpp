/// @file
/// The Python packages of an environment, each with its exact version, file and hash.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pipeline::lockfile {

/// Where a package comes from, and so how it is named to an installer.
enum class PackageOrigin {
  index,       ///< `name==version`: its index may need credentials, which no lock has.
  url,         ///< A file at an address of its own.
  repository,  ///< A commit.
  path,        ///< A file or folder on this machine.
};

struct LockedPackage {
  std::string name;        ///< Normalised as in PEP 503: lower case, runs of `-_.` are one `-`.
  std::string version;     ///< PEP 440.
  std::string file;        ///< Name of the wheel or source distribution; empty for what has none: a
                           ///< repository or a folder.
  std::uint64_t size = 0;  ///< Of the file, in bytes; 0 if the index does not say.
  PackageOrigin origin = PackageOrigin::index;
  std::string sha256;  ///< Of the file, hex; empty for what has none.
  std::string url;     ///< Of the file, without credentials; `git+URL@COMMIT` for a repository;
                       ///< for a local file or folder its path, relative to the pipeline's folder.
  std::vector<std::string> required_by;  ///< Names of packages, sorted; empty for what the step's
                                         ///< requirements ask for themselves alone.
  bool operator==(const LockedPackage&) const = default;
};

/// Equal environments of a pipeline's steps are one.
struct LockedEnvironment {
  std::string parent;         ///< The parent image's reference; `local` for virtual environments.
  std::string parent_digest;  ///< docker::image_identity(), hex; empty for virtual environments.
  std::string python;         ///< `3.11.7`.
  std::string tag;            ///< Python's own tag for wheels: `cp311`.
  std::string platform;   ///< Of wheels, the newest that Python accepts: `manylinux_2_36_x86_64`.
  std::string installer;  ///< `uv` or `pip`.
  std::vector<std::string> requirements;  ///< As users wrote them, options first; no credentials.
  std::string apt_snapshot;  ///< When the archives of `apt_packages` were as they are: see
                             ///< settings::snapshot_id(). Empty: the newest.
  std::vector<std::string> apt_packages;  ///< `name=version`, as installed; sorted.
  std::vector<LockedPackage> packages;    ///< Those that are installed: what the parent brings is
                                          ///< not among them. Sorted by name.
  bool operator==(const LockedEnvironment&) const = default;
};

/// Returns a digest, hex, over what is installed and for which Python: equal digests, equal files.
/// What was asked for is not part of it, nor for which platform: an image's parent says that.
std::string digest(const LockedEnvironment& environment);

/// Returns lines of a requirements file, one a package, with hashes where they are known. Installed
/// with `--no-deps`, they give exactly the locked packages.
std::vector<std::string> install_lines(const LockedEnvironment& environment);

/// Returns true for what is no wheel: a source distribution, a repository or a folder.
bool is_built_from_source(const LockedPackage& package);

/// Returns a sentence that names the packages of which a lock pins the source alone; empty if there
/// are none. What a build requires is chosen when it is built.
std::string notice_of_sources(const LockedEnvironment& environment);

/// True for what an installer takes for a name (PEP 508), a version (PEP 440, loosely) or an
/// address, and never for an option: lock files are edited by hand and merged by machines.
bool is_package_name(std::string_view text);
bool is_version(std::string_view text);
bool is_address(std::string_view text);

/// Returns a name normalised as in PEP 503.
std::string normalised_name(std::string_view name);

}  // namespace pipeline::lockfile
