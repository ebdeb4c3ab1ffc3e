/// @file
/// The files that the processes of each step may read.
#pragma once

#include <filesystem>
#include <map>
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

  /// Returns the sandbox for the process; this object keeps it. Null if the kernel does not have
  /// Landlock, or if a volume is the whole file system.
  /// @param programs the programs that the command names by their paths
  processes::Sandbox* of(const AttemptSpec& attempt, const processes::Workspace& workspace,
                         const std::vector<std::filesystem::path>& programs,
                         const processes::ProcessOptions& process);

 private:
  const std::filesystem::path root_, state_, environments_;
  /// Keyed by what a step may read besides the system's files.
  std::map<std::vector<std::filesystem::path>, processes::Sandbox> sandboxes_;
};

}  // namespace pipeline::orchestrators::local
