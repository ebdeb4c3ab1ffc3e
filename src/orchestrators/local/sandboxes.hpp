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

/// Steps with the same programs, volumes and data share a sandbox; the rest is in the state folder.
class Sandboxes {
 public:
  /// @param root         the pipeline's folder
  /// @param environments the folder of the virtual environments
  Sandboxes(std::filesystem::path root, std::filesystem::path state,
            std::filesystem::path environments);

  /// Returns the sandbox for a process with these variables, which this object keeps; null where
  /// the kernel has none, or the step may read everything.
  /// @param programs those that the command names by their paths
  processes::Sandbox* of(const AttemptSpec& attempt, const processes::Workspace& workspace,
                         const std::vector<std::filesystem::path>& programs,
                         const processes::ProcessOptions& process);

 private:
  const std::filesystem::path root_, state_, environments_;
  /// Keyed by what a step may read besides the system's files.
  std::map<std::vector<std::filesystem::path>, processes::Sandbox> sandboxes_;
};

}  // namespace pipeline::orchestrators::local
