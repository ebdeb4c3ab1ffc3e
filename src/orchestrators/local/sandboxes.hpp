/// @file
/// The files that the processes of each step may read.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "orchestrators/orchestrator.hpp"
#include "orchestrators/processes/sandbox.hpp"

namespace pipeline::orchestrators::processes {
class Workspace;
struct ProcessOptions;
}  // namespace pipeline::orchestrators::processes

namespace pipeline::orchestrators::local {

/// The sandboxes (Landlock, processes/sandbox.hpp) of steps. Steps that read the same programs,
/// volumes and data share a sandbox; everything else that they read is in the state folder.
class Sandboxes {
 public:
  /// @param root         the pipeline's folder
  /// @param environments the folder of the virtual environments
  Sandboxes(std::filesystem::path root, std::filesystem::path state,
            std::filesystem::path environments);

  /// Returns the sandbox for the process; null if the kernel does not have Landlock, or if a volume
  /// is the whole file system. The sandbox is shared, because this object may forget the sandbox
  /// before the process has started.
  /// @param programs the programs that the command names by their paths
  std::shared_ptr<const processes::Sandbox> sandbox_of(
      const AttemptSpec& attempt, const processes::Workspace& workspace,
      const std::vector<std::filesystem::path>& programs, const processes::ProcessOptions& process);

 private:
  const std::filesystem::path root_, state_, environments_;
  /// The home folder, and everything that a step may read besides the files of the system and of
  /// the home folder.
  using Key = std::pair<std::filesystem::path, std::vector<std::filesystem::path>>;
  std::map<Key, std::shared_ptr<const processes::Sandbox>> sandboxes_;
};

}  // namespace pipeline::orchestrators::local
