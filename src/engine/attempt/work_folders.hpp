/// @file
/// The folders that attempts work in.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "orchestrators/orchestrator.hpp"

namespace pipeline::engine {

/// Creates the folders of a run's attempts, and removes them. Creating and removing six folders
/// takes longer than a short process, so an unchanged folder of a successful attempt is reused for
/// a later attempt, under that attempt's name.
class WorkFolders {
 public:
  /// @param root the run's own folder
  explicit WorkFolders(std::filesystem::path root) : root_(std::move(root)) {}

  /// Returns the folder `name` for an attempt, with empty folders `outputs` and `scratch` in it.
  std::filesystem::path take(const std::string& name,
                             const orchestrators::Capabilities& orchestrator);
  /// Returns the folder `name` of an attempt that an earlier driver may have begun: creates what is
  /// missing of take()'s folders, and keeps their content.
  std::filesystem::path join(const std::string& name);
  /// Removes the folder, or keeps it for another attempt if it `succeeded`.
  void give_back(const std::filesystem::path& folder,
                 const orchestrators::Capabilities& orchestrator, bool succeeded);

 private:
  /// Returns true if an attempt with this folder can be started: it has only empty folders, all
  /// with the mode of a new one.
  /// @param inner names of folders in `scratch` that the orchestrator makes
  bool is_unused(const std::filesystem::path& folder, const std::vector<std::string>& inner) const;

  std::filesystem::path root_;
  mode_t mode_ = 0;  ///< Mode of a newly created folder.
  /// Keyed by the orchestrator's name.
  std::map<std::string, std::vector<std::filesystem::path>> spare_;
};

/// The attempt's own folder; removed or reused at destruction.
class WorkFolder {
 public:
  WorkFolder(WorkFolders& folders, const std::string& name,
             const orchestrators::Capabilities& orchestrator, bool joins)
      : folders_(folders),
        orchestrator_(orchestrator),
        path_(joins ? folders.join(name) : folders.take(name, orchestrator)) {}
  ~WorkFolder() { folders_.give_back(path_, orchestrator_, succeeded); }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const char* name) const { return path_ / name; }

  bool succeeded = false;  ///< Set by the owner after a success, so that the folder can be reused.

 private:
  WorkFolders& folders_;
  const orchestrators::Capabilities& orchestrator_;
  std::filesystem::path path_;
};

}  // namespace pipeline::engine
