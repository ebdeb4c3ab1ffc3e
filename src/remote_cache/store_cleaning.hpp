/// @file
/// Makes a remote store smaller: removes old results, and artifacts that no result, name or process
/// on any machine needs. Safe beside runs on other machines: each holds a lease
/// (blobs/store_lease.hpp) on what it uses. Earlier versions of pipe hold no leases; because of
/// them, nothing young is removed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "remote_cache/remote_names.hpp"

namespace pipeline::remote_cache {

struct CleaningPolicy {
  /// Removes results and checkpoints that were written longer ago.
  std::optional<std::chrono::seconds> older_than = {};
  /// Removes the oldest results until the artifacts that stay have at most so many bytes.
  std::optional<std::uint64_t> max_bytes = {};
  /// Returns the keys of further artifacts that stay. Called before the cleaning, and again once
  /// no process can begin to use another artifact that the cleaning removes.
  std::function<async::Task<std::set<std::string>>()> kept = {};
  bool is_dry_run = false;  ///< Write and remove nothing.
  /// Nothing younger is removed: a process without a lease may have just written it.
  std::chrono::seconds min_age = std::chrono::hours(24);
  blobs::LeaseTimes times = {};
};

struct CleaningReport {
  struct Removed {
    std::string kind, name;
    std::uint64_t bytes = 0;
  };
  std::vector<Removed> removed;  ///< With `is_dry_run`, the items that would be removed.
  std::uint64_t bytes = 0;       ///< Total size of `removed`.
  std::uint64_t bytes_left = 0;  ///< Total size of the artifacts that stay.
};

/// Throws EnvironmentError if the store cannot be reached. Also throws, before anything is removed,
/// if a later version of pipe wrote a record, because this version cannot read which artifacts the
/// record needs.
/// @param on_note called for what stays, and for waits
async::Task<CleaningReport> clean_store(blobs::BlobStore& store, RemoteNames& names,
                                        CleaningPolicy policy,
                                        std::function<void(const std::string&)> on_note,
                                        core::CancelSource& cancel);

}  // namespace pipeline::remote_cache
