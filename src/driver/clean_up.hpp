/// @file
/// Garbage collection: removes runs with their artifacts, and the remains of runs on this machine
/// and its engine.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <pipeline/settings.hpp>

#include "driver/workspace.hpp"

namespace pipeline::driver {

/// The items to remove, as the options of `pipe clean` name them.
struct CleanUp {
  bool containers = false, images = false, environments = false, runs = false, all = false;
  bool remote = false;  ///< Cleans the profile's remote store, and nothing on this machine.
  bool dry_run = false;
  std::optional<unsigned> keep = {};  ///< Number of newest runs that are kept; unset: none.
  std::string keep_storage;  ///< Bytes of artifacts, or of images, that are kept; empty: none.
  std::string older_than;    ///< With `remote`: the age of removed results; empty: no age.
};

struct RemovedItem {
  std::string kind, name;
  Bytes bytes = 0;
};

struct CleanUpReport {
  std::vector<RemovedItem> removed;  ///< With `dry_run`, the items that would be removed.
  std::vector<std::string> kept;     ///< Each item that stays, with the reason.
  Bytes freed = 0;
  bool is_complete = true;  ///< False if something could not be removed, which `kept` names.
};

/// Removes the named items. Throws InputError if none are named or the sizes are wrong.
/// @param on_kept called for each entry of `kept` as soon as it is known
CleanUpReport clean_up(Workspace& workspace, const CleanUp& wanted,
                       const std::function<void(const std::string&)>& on_kept);

}  // namespace pipeline::driver
