/// @file
/// The lock file of a pipeline: looked up when steps are planned, written when requirements were
/// resolved.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lock/locked_environment.hpp"

namespace pipeline::lock {

/// LockedEnvironment::parent of virtual environments.
inline constexpr std::string_view local_parent = "local";

/// What a step asks for, and where it is installed.
struct Request {
  std::string parent, parent_digest;  ///< See LockedEnvironment.
  std::string tag, platform;  ///< Of this machine's Python, for virtual environments; else empty.
  std::string installer;
  std::vector<std::string> requirements;  ///< Without credentials: see core::without_credentials().
  bool operator==(const Request&) const = default;
};

/// What the command line asks of the lock.
struct LockOptions {
  bool frozen = false;   ///< `--locked`: what is not in the lock is an error.
  bool dry_run = false;  ///< Nothing is written.
  bool upgrade_all = false;
  std::set<std::string> upgrade;  ///< Normalised names of packages.
};

/// What one environment's lock changes.
struct LockChange {
  LockedEnvironment before, after;  ///< `before` is empty for a new environment.
};

class LockFile {
 public:
  /// @param path the file; it need not exist
  explicit LockFile(std::filesystem::path path, LockOptions options = {});

  const std::filesystem::path& path() const { return path_; }
  const LockOptions& options() const { return options_; }

  /// Returns the environment that the file has for the request, if nothing has to be resolved.
  /// Throws InputError if the file is damaged, or if it is frozen and does not fit the request.
  std::optional<LockedEnvironment> find(const Request& request);

  /// Returns the environment whose versions a resolution of the request prefers; an empty one if
  /// there is none. Those that are to be upgraded are not among its packages.
  LockedEnvironment preferred(const Request& request);

  /// Stores what a request was resolved to, and writes the file. What others have written since is
  /// kept. Returns a notice if the file cannot be written; it then holds for this object only.
  std::string put(const Request& request, LockedEnvironment environment);

  /// Removes environments that no request has asked for, and writes the file if it loses some. Call
  /// it once all steps of the pipeline have been looked up.
  void remove_unused();

  /// Returns true if the file has what this object has read or written last.
  bool is_current();

  /// Returns what put() has changed, in the order of its calls.
  const std::vector<LockChange>& changes() const { return changes_; }

 private:
  void read();
  std::string write();
  const LockedEnvironment* exact(const Request& request) const;
  const LockedEnvironment* nearest(const Request& request) const;
  void replace(const Request& request, LockedEnvironment environment);
  [[noreturn]] void refuse(const Request& request) const;

  const std::filesystem::path path_;
  const LockOptions options_;
  bool is_read_ = false;
  std::string text_;  ///< Of the file, as it was read or written last.
  std::vector<LockedEnvironment> environments_;
  std::vector<Request> asked_;     ///< All requests of this object's life.
  std::vector<Request> resolved_;  ///< Those of put().
  std::vector<LockChange> changes_;
};

/// Returns the file beside a pipeline file: `pipeline.lock` for `pipeline.yaml`.
std::filesystem::path lock_beside(const std::filesystem::path& pipeline_file);

/// Returns lines that say what a change does to the packages: `+ idna 3.7`, `- six 1.16.0`,
/// `~ numpy 1.26.4 -> 2.0.0`.
std::vector<std::string> describe(const LockChange& change);

}  // namespace pipeline::lock
