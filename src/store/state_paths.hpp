/// @file
/// The layout of the state folder.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace pipeline::store {

/// Beginning of the names of the files with a detached run's events, beside its attempts' logs.
inline constexpr std::string_view events_prefix = "events.";

/// Returns the name of an attempt's log below the folder logs/. @param rank the task whose log it
/// is; the log of rank 0 is the attempt's
std::string log_name(const std::string& run, const std::string& step, unsigned attempt,
                     unsigned rank = 0);

/// Names come from the database, which may have been downloaded: each function throws
/// EnvironmentError for a name that leads out of the folder.
class StatePaths {
 public:
  explicit StatePaths(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path database() const { return folder_ / "pipe.db"; }
  /// Returns folder/logs/name.
  std::filesystem::path log_file(const std::string& name) const;
  /// Returns folder/work/run, the parent of the folders of a run's attempts.
  std::filesystem::path work_folder(const std::string& run) const;
  /// Returns folder/failed/run: what failed attempts wrote to their outputs, below STEP.ATTEMPT.
  std::filesystem::path failed_folder(const std::string& run) const;
  /// Returns folder/detached/run, the files of a detached run.
  std::filesystem::path detached_folder(const std::string& run) const;
  /// Returns folder/drivers/run, the file that the run's driver writes as its heartbeat.
  std::filesystem::path heartbeat_file(const std::string& run) const;

  /// Removes a file or folder below this folder. Throws EnvironmentError where a link leads there:
  /// somebody else may have made the state folder, and nothing behind a link is removed.
  void remove(const std::filesystem::path& path) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace pipeline::store
