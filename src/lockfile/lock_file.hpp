/// @file
/// The lock file of a pipeline: read when steps are planned, written when requirements were
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

/// A change of an address's lock.
struct DataChange {
  LockedData before;  ///< Without a digest for a new address.
  LockedData after;   ///< Without a digest if LockOptions::dry_run is set: nothing is fetched then.
};

/// A step's requirements, and the parent on which they are installed.
struct LockRequest {
  std::string parent, parent_digest;  ///< See LockedEnvironment.
  std::string tag, platform;          ///< Those of a virtual environment's Python; else empty.
  std::string installer;
  std::vector<std::string> requirements;  ///< See core::without_credentials().
  bool operator==(const LockRequest&) const = default;
};

/// Options of the command line.
struct LockOptions {
  bool frozen = false;   ///< `--locked`: a missing environment or address is an error.
  bool dry_run = false;  ///< Nothing is written.
  bool upgrade_all = false;
  std::set<std::string> upgrade;  ///< Names of packages, inputs and addresses, normalised.
};

/// A change of an environment's lock.
struct LockChange {
  LockedEnvironment before, after;  ///< `before` is empty for a new environment.
};

class LockFile {
 public:
  /// @param path the file, which need not exist
  explicit LockFile(std::filesystem::path path, LockOptions options = {});

  const std::filesystem::path& path() const { return path_; }
  const LockOptions& options() const { return options_; }

  /// Accepts a file with git's conflict markers from now on. Environments that are equal in both
  /// versions are kept; others are resolved again and prefer the packages of both, those of the
  /// first version where they differ.
  void accept_conflicts() { accepts_conflicts_ = true; }
  /// Returns true if the file had two versions.
  bool had_conflict() const { return had_conflict_; }

  /// Returns the file's environment for the request; nothing if the request has to be resolved.
  /// Throws InputError if the file is damaged, or if LockOptions::frozen is set and
  /// the request has to be resolved.
  std::optional<LockedEnvironment> find(const LockRequest& request);

  /// Returns the environment whose versions a resolution of the request prefers, without the
  /// packages that are to be upgraded; empty if there is none.
  LockedEnvironment preferred(const LockRequest& request);

  /// Stores the environment that a request was resolved to, and writes the file, keeping changes by
  /// other processes. Returns a notice if the file cannot be written; the environment is then known
  /// to this object only.
  std::string put(const LockRequest& request, LockedEnvironment environment);

  /// Records the pipeline's data: each address with the names of its inputs. Names to be upgraded
  /// that belong to data are no longer taken for packages, and remove_unused() removes other data.
  void use_data(std::map<std::string, std::set<std::string>> data);
  /// Returns the file's entry of an address; null if there is none.
  const LockedData* find_data(const std::string& address);
  /// Returns true if newer content of the address is to be fetched.
  bool upgrades_data(const std::string& address) const;
  /// Stores the data of addresses, and writes the file as put() does.
  std::string put_data(std::vector<LockedData> data);

  /// Removes environments and data that were not asked for, and writes the file if any were
  /// removed. With LockOptions::dry_run or LockOptions::frozen, only finds them. Called once all
  /// steps of the pipeline have been looked up.
  void remove_unused();
  /// Makes remove_unused() keep all environments, because the packages of a step are not known: the
  /// step may use any environment.
  void keep_all_environments() { has_unknown_ = true; }
  /// Returns a line for each entry that remove_unused() has found: `- python:3.11: idna, six`.
  const std::vector<std::string>& unused() const { return unused_; }
  /// Throws InputError if LockOptions::frozen is set and remove_unused() has found unused entries.
  void refuse_unused() const;

  /// Returns an error for a name to be upgraded that no package of the file, old or new, and no
  /// data has. Called once all requests were resolved.
  std::optional<core::Diagnostic> unknown_upgrade() const;

  /// Returns true if this object has changed the file.
  bool is_written() const { return is_written_; }

  /// Returns true if the file has the text that this object has read or written last.
  bool is_current();

  /// Returns the changes by put(), in the order of its calls.
  const std::vector<LockChange>& changes() const { return changes_; }
  const std::vector<DataChange>& data_changes() const { return data_changes_; }

 private:
  void read();
  bool read_sides();
  void add_names(const LockedEnvironment& environment);
  void merge();
  std::string write();
  /// Returns the environment that can be installed as it is for the request; null if none can.
  const LockedEnvironment* exact(const LockRequest& request) const;
  /// Returns the environment that has most in common with the request; null if none has anything.
  static const LockedEnvironment* nearest(const LockRequest& request,
                                          const std::vector<LockedEnvironment>& environments);
  std::string text() const;
  void replace(const LockRequest& request, LockedEnvironment environment);
  [[noreturn]] void refuse(const LockRequest& request) const;

  const std::filesystem::path path_;
  LockOptions options_;
  bool is_read_ = false, accepts_conflicts_ = false, had_conflict_ = false, is_written_ = false,
       has_unknown_ = false;
  std::string text_;  ///< Text of the file when it was last read or written.
  std::vector<LockedEnvironment> environments_;
  std::vector<LockedEnvironment> ours_, theirs_;  ///< The versions of a file in conflict.
  std::vector<LockRequest> asked_;                ///< All requests to this object.
  std::vector<LockRequest> resolved_;             ///< Requests of put().
  std::vector<LockChange> changes_;
  std::map<std::string, LockedData> data_;  ///< Keyed by address.
  std::optional<std::map<std::string, std::set<std::string>>> used_data_;
  std::set<std::string> upgraded_data_;  ///< Addresses to upgrade.
  std::set<std::string> fetched_;        ///< Addresses of put_data().
  std::set<std::string> names_;          ///< Names of packages that the file has or had.
  std::vector<DataChange> data_changes_;
  std::vector<std::string> unused_;  ///< See unused().
};

/// Returns the file beside a pipeline file: `pipeline.lock` for `pipeline.yaml`.
std::filesystem::path lock_beside(const std::filesystem::path& pipeline_file);

/// Returns `python:3.11`, or `Python 3.11.2 of this machine`.
std::string shown_environment(const LockedEnvironment& environment);
/// Returns a line for each changed package: `+ idna 3.7`, `- six 1.16.0`, `~ numpy 1.26 -> 2.0`.
std::vector<std::string> describe(const LockChange& change);
/// Returns a line for changed data: `+ https://HOST/data.csv, 1.2 MiB`, `~ s3://BUCKET/KEY, 1 B ->
/// 2 B`.
std::string describe(const DataChange& change);

}  // namespace pipeline::lockfile
