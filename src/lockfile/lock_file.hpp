/// @file
/// The lock file of a pipeline: looked up when steps are planned, written when requirements were
/// resolved.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/diagnostic.hpp"
#include "lockfile/locked_data.hpp"
#include "lockfile/locked_environment.hpp"

namespace pipeline::lockfile {

/// LockedEnvironment::parent of virtual environments.
inline constexpr std::string_view local_parent = "local";

/// What one address's lock changes.
struct DataChange {
  LockedData before, after;  ///< `before` has no digest for a new one; `after` has none with
                             ///< `dry_run`, which fetches nothing.
};

/// What a step asks for, and where it is installed.
struct LockRequest {
  std::string parent, parent_digest;  ///< See LockedEnvironment.
  std::string tag, platform;  ///< Of this machine's Python, for virtual environments; else empty.
  std::string installer;
  std::vector<std::string> requirements;  ///< Without credentials: see core::without_credentials().
  bool operator==(const LockRequest&) const = default;
};

/// What the command line asks of the lock.
struct LockOptions {
  bool frozen = false;   ///< `--locked`: what is not in the lock is an error.
  bool dry_run = false;  ///< Nothing is written.
  bool upgrade_all = false;
  std::set<std::string> upgrade;  ///< Names of packages, inputs and addresses, normalised.
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

  /// From now on a file in which git has left conflict markers is no error: its two versions are
  /// taken together: what is not the same in both has to be resolved, and their packages are
  /// preferred, the first one's where they differ.
  void merge_conflicts() { merges_ = true; }
  /// Returns true if the file had two versions.
  bool had_conflict() const { return had_conflict_; }

  /// Returns the environment that the file has for the request, if nothing has to be resolved.
  /// Throws InputError if the file is damaged, or if it is frozen and does not fit the request.
  std::optional<LockedEnvironment> find(const LockRequest& request);

  /// Returns the environment whose versions a resolution of the request prefers; an empty one if
  /// there is none. Those that are to be upgraded are not among its packages.
  LockedEnvironment preferred(const LockRequest& request);

  /// Stores what a request was resolved to, and writes the file. What others have written since is
  /// kept. Returns a notice if the file cannot be written; it then holds for this object only.
  std::string put(const LockRequest& request, LockedEnvironment environment);

  /// Records which data the pipeline has: each address with the names of its inputs. The names
  /// that are to be upgraded and are of data are not of packages. remove_unused() then removes
  /// other data.
  void use_data(std::map<std::string, std::set<std::string>> data);
  /// Returns what the file has of an address; null if it has nothing.
  const LockedData* find_data(const std::string& address);
  /// Returns true if newer content of the address is to be taken.
  bool upgrades_data(const std::string& address) const;
  /// Stores what addresses gave, and writes the file as put().
  std::string put_data(std::vector<LockedData> data);

  /// Removes environments that no request has asked for, and writes the file if it loses some. Call
  /// it once all steps of the pipeline have been looked up.
  void remove_unused();

  /// Returns an error for a name that is to be upgraded, and is neither that of a package that the
  /// file had or has, nor of data. Call it once all requests were resolved.
  std::optional<core::Diagnostic> unknown_upgrade() const;

  /// Returns true if this object has written another text than the file had.
  bool is_written() const { return is_written_; }

  /// Returns true if the file has what this object has read or written last.
  bool is_current();

  /// Returns what put() has changed, in the order of its calls.
  const std::vector<LockChange>& changes() const { return changes_; }
  const std::vector<DataChange>& data_changes() const { return data_changes_; }

 private:
  void read();
  bool read_sides();
  void add_names(const LockedEnvironment& environment);
  std::string write();
  const LockedEnvironment* exact(const LockRequest& request) const;
  static const LockedEnvironment* nearest(const LockRequest& request,
                                          const std::vector<LockedEnvironment>& environments);
  std::string text() const;
  void replace(const LockRequest& request, LockedEnvironment environment);
  [[noreturn]] void refuse(const LockRequest& request) const;

  const std::filesystem::path path_;
  LockOptions options_;
  bool is_read_ = false, merges_ = false, had_conflict_ = false, is_written_ = false;
  std::string text_;  ///< Of the file, as it was read or written last.
  std::vector<LockedEnvironment> environments_;
  std::vector<LockedEnvironment> ours_, theirs_;  ///< The versions of a file in conflict.
  std::vector<LockRequest> asked_;                ///< All requests of this object's life.
  std::vector<LockRequest> resolved_;             ///< Those of put().
  std::vector<LockChange> changes_;
  std::map<std::string, LockedData> data_;  ///< By address.
  std::optional<std::map<std::string, std::set<std::string>>> used_data_;
  std::set<std::string> upgraded_data_;  ///< Addresses to upgrade.
  std::set<std::string> fetched_;        ///< Addresses of put_data().
  std::set<std::string> names_;          ///< Of packages that the file has had.
  std::vector<DataChange> data_changes_;
};

/// Returns the file beside a pipeline file: `pipeline.lock` for `pipeline.yaml`.
std::filesystem::path lock_beside(const std::filesystem::path& pipeline_file);

/// Returns lines that say what a change does to the packages: `+ idna 3.7`, `- six 1.16.0`,
/// `~ numpy 1.26.4 -> 2.0.0`.
std::vector<std::string> describe(const LockChange& change);
/// The same for data: `+ https://HOST/data.csv, 1.2 MiB`, `~ s3://BUCKET/KEY, 1 B -> 2 B`.
std::string describe(const DataChange& change);

}  // namespace pipeline::lockfile
