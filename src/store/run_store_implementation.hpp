/// @file
/// What the sources of RunStore share.
#pragma once

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/error.hpp"
#include "store/database.hpp"
#include "store/run_store.hpp"

namespace pipeline::store {

/// Names come from the database; a path that leaves the folder would be removed or shown.
inline std::filesystem::path below(const std::string& name) {
  std::filesystem::path relative(name);
  if (name.empty() || relative.is_absolute() || std::ranges::find(relative, "..") != relative.end())
    throw core::EnvironmentError("'" + name + "' is no name of a log");
  return relative;
}

/// The locks that mark a run as driven by this process.
struct Hold {
  std::optional<StateLock> lock;
  std::unique_ptr<Heartbeat> heartbeat;
};

struct RunStore::Implementation {
  std::filesystem::path folder;
  bool is_local;
  Database database;
  bool in_transaction = false;
  std::map<std::string, Hold> held;  ///< Keyed by run.

  std::filesystem::path heartbeat(const std::string& run) const {
    return folder / "drivers" / below(run);
  }
  Driver drive(const RunRecord& run);
};

}  // namespace pipeline::store
