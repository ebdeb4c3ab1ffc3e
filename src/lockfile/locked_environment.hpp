/// @file
/// The Python packages of an environment, each with its exact version, file and hash.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pipeline::lockfile {

/// The origin of a package, which determines its notation for an installer.
enum class PackageOrigin {
  index,       ///< `name==version`, from an index; locks contain no credentials of indexes.
  url,         ///< A file at an address of its own.
  repository,  ///< A commit.
  path,        ///< A file or folder on this machine.
};

struct LockedPackage {
  std::string name;     ///< Normalised as in PEP 503: lower case, runs of `-_.` are one `-`.
  std::string version;  ///< PEP 440.
  std::string file;     ///< The wheel or source distribution; empty for a repository or a folder.
  std::uint64_t size = 0;  ///< Size of the file, bytes; 0 if the index does not state it.
  PackageOrigin origin = PackageOrigin::index;
  std::string sha256;  ///< Digest of the file, hex; empty without a file.
  std::string url;     ///< URL of the file, without credentials; `git+URL@COMMIT` for a repository;
                       ///< the path of a local file or folder, relative to the pipeline's folder.
  std::vector<std::string>
      required_by;  ///< Names of packages, sorted; empty if only the step asks.
  bool operator==(const LockedPackage&) const = default;
};

/// A locked environment, shared by all steps of a pipeline for which it is equal.
struct LockedEnvironment {
  std::string parent;         ///< The parent image's reference; `local` for virtual environments.
  std::string parent_digest;  ///< docker::image_identity(), hex; empty for virtual environments.
  std::string python;         ///< `3.11.7`.
  std::string tag;            ///< Python's own tag for wheels: `cp311`.
  std::string platform;       ///< Newest that Python accepts for wheels: `manylinux_2_36_x86_64`.
  std::string installer;      ///< `uv` or `pip`.
  std::vector<std::string> requirements;  ///< The users' notation, options first; no credentials.
  std::string apt_snapshot;  ///< settings::snapshot_id() of the archives; empty: the newest.
  std::vector<std::string> apt_packages;  ///< `name=version`, as installed; sorted.
  std::vector<LockedPackage> packages;    ///< Packages that the parent lacks, sorted by name.
  bool operator==(const LockedEnvironment&) const = default;
};

/// Returns a digest, hex, over the installed packages and the tag of Python: equal digests mean
/// equal files. Neither the requirements nor the platform, which an image's parent determines, are
/// part of the digest.
std::string digest(const LockedEnvironment& environment);

/// Returns lines of a requirements file, one a package, with known hashes. Installed with
/// `--no-deps`, the lines result in exactly the locked packages.
std::vector<std::string> install_lines(const LockedEnvironment& environment);

/// Returns `HASH BYTES NAME ADDRESS` of each file with a hash, for install_locked.py of
/// templates/lock. The address may be one that only this machine reaches.
std::string address_lines(const LockedEnvironment& environment);

/// Returns true for a source distribution, a repository or a folder; false for a wheel.
bool is_built_from_source(const LockedPackage& package);

/// Returns a sentence that names the packages of which a lock pins the source, but not the
/// requirements of the build; empty if there are none.
std::string notice_of_sources(const LockedEnvironment& environment);

/// Returns true for a package name (PEP 508), a version (PEP 440, loosely) or an address that an
/// installer cannot take for an option: lock files are edited by hand and merged by machines.
bool is_package_name(std::string_view text);
bool is_version(std::string_view text);
bool is_address(std::string_view text);

/// A member of a package that cannot be locked.
struct PackageFault {
  const char* key;  ///< As in the lock file.
  std::string why;
};
/// Returns what is wrong with the members that are set.
std::vector<PackageFault> faults_of(const LockedPackage& package);

/// Returns a name normalised as in PEP 503.
std::string normalised_name(std::string_view name);

}  // namespace pipeline::lockfile
