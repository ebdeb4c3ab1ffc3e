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
  /// Creates the missing parts of that folder and keeps the others, for an attempt that is joined.
  std::filesystem::path join(const std::string& name);
  /// Removes the folder, or keeps it for another attempt if it `succeeded`.
  void give_back(const std::filesystem::path& folder,
                 const orchestrators::Capabilities& orchestrator, bool succeeded);

 private:
  bool empty(const std::filesystem::path& folder, const std::vector<std::string>& inner) const;

  std::filesystem::path root_;
  mode_t mode_ = 0;  ///< Mode of a newly created folder.
  std::map<std::string, std::vector<std::filesystem::path>>
      spare_;  ///< Keyed by the orchestrator's name.
};

}  // namespace pipeline::engine
