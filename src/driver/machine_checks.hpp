/// @file
/// Checks of `pipe doctor`: what this machine, its engine and its state folder have, and what steps
/// would miss.
#pragma once

#include <string>
#include <vector>

#include "driver/workspace.hpp"

namespace pipeline::driver {

enum class CheckLevel { ok, warn, fail };

struct MachineCheck {
  const char* name;
  CheckLevel level;
  std::string found;               ///< The finding, for the user.
  std::vector<std::string> fixes;  ///< Actions of the user that mend the finding.
};

/// Returns the result of every check. A check that cannot be made counts as failed.
std::vector<MachineCheck> check_machine(Workspace& workspace);

}  // namespace pipeline::driver
