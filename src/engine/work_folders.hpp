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

/// Makes the folders of a run's attempts, and removes them. Making and removing six folders takes
/// longer than a short process, so a folder that a successful attempt left as it was made serves
/// a later attempt, under that attempt's name.
class WorkFolders {
 public:
  /// @param root the run's own folder
  explicit WorkFolders(std::filesystem::path root) : root_(std::move(root)) {}

  /// Gives an attempt the folder `name`, with empty folders `outputs` and `scratch` in it.
  std::filesystem::path take(const std::string& name,
                             const orchestrators::Capabilities& orchestrator);
  /// Makes what is missing of that folder and leaves the rest, for an attempt that is joined.
  std::filesystem::path join(const std::string& name);
  /// Removes the folder, or keeps it for another attempt there if it `succeeded`.
  void give_back(const std::filesystem::path& folder,
                 const orchestrators::Capabilities& orchestrator, bool succeeded);

 private:
  bool empty(const std::filesystem::path& folder, const std::vector<std::string>& inner) const;

  std::filesystem::path root_;
  mode_t mode_ = 0;  ///< Of a folder as it is made here.
  std::map<std::string, std::vector<std::filesystem::path>>
      spare_;  ///< By the orchestrator's name.
};

}  // namespace pipeline::engine
