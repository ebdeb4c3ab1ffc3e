/// @file
/// Checks the database of a state folder and the artifacts against their digests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "driver/workspace.hpp"

namespace pipeline::driver {

/// An artifact that is not whole on this machine.
struct ArtifactFinding {
  enum class State { damaged, missing, not_here } state;  ///< not_here: on another machine.
  core::Digest digest;
  std::string run, output;  ///< A run that uses the artifact, and `STEP.OUTPUT`; empty: none.
};

struct Verification {
  std::vector<ArtifactFinding> findings;
  std::vector<std::string> database;  ///< Faults of the database.
  std::size_t artifacts = 0;          ///< Number of whole artifacts.
  std::uint64_t bytes = 0;            ///< The sum of their sizes.
  /// Returns the number of findings about the database and this machine's artifacts.
  std::size_t problems() const;
};

/// Reads the database and, if it is whole, the artifacts of the run. Moves damaged artifacts aside.
/// @param run empty: all artifacts
Verification verify(Workspace& workspace, const std::string& run);

}  // namespace pipeline::driver
