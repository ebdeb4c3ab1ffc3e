#include "driver/remote_clean_up.hpp"

#include <algorithm>

#include "core/diagnostic.hpp"
#include "core/quantity.hpp"
#include "remote_cache/store_cleaning.hpp"
#include "remote_driver/run_replica.hpp"

namespace pipeline::driver {
namespace {

/// Converts the options. Throws InputError for a wrong age.
remote_cache::CleaningPolicy policy_of(const CleanUp& wanted) {
  remote_cache::CleaningPolicy policy;
  policy.is_dry_run = wanted.dry_run;
  if (!wanted.keep_storage.empty()) policy.max_bytes = core::parse_bytes(wanted.keep_storage);
  if (!wanted.older_than.empty()) {
    const auto age = core::parse_duration(wanted.older_than);
    if (!age)
      throw core::InputError("--older-than '" + wanted.older_than + "' is not a time",
                             "write a number and a unit: 30d, 12h");
    policy.older_than =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::milliseconds(age->count()));
  }
  return policy;
}

/// Returns the artifacts of runs of this machine that have the tag `keep`.
std::set<std::string> kept_here(Workspace& workspace) {
  std::set<std::string> kept;
  const auto state = workspace.existing_state();
  if (!state) return kept;
  auto& runs = workspace.store(*state).runs();
  for (const auto& run : runs.list()) {
    if (std::ranges::count(run.tags, "keep") == 0) continue;
    for (const auto& step : runs.steps(run.id))
      for (const auto& output : step.outputs)
        kept.insert(blobs::RemoteArtifacts::key_of(output.digest.hex(), output.is_directory));
  }
  return kept;
}

/// Returns the artifacts of the runs that clusters drive or have driven.
async::Task<std::set<std::string>> kept_by_drivers(blobs::RemoteArtifacts& remote) {
  std::set<std::string> kept;
  const auto runs = co_await remote.store().folders("drivers");
  for (const auto& run : runs) {
    remote_driver::RunReplica replica(remote, run);
    const auto keys = co_await replica.artifacts();
    kept.insert(keys.begin(), keys.end());
  }
  co_return kept;
}

}  // namespace

CleanUpReport clean_remote_store(Workspace& workspace, const CleanUp& wanted,
                                 const std::function<void(const std::string&)>& on_kept) {
  const auto& settings = workspace.options().remote_store;
  if (!settings.is_given())
    throw core::InputError("no profile names a remote store",
                           "name a profile with an `artifact_store`: `--profile NAME`");
  auto policy = policy_of(wanted);
  CleanUpReport report;
  const auto note = [&](const std::string& reason) {
    on_kept(reason);
    report.kept.push_back(reason);
  };
  blobs::RemoteArtifacts remote(workspace.loop(), settings);
  policy.kept = [&, tagged = kept_here(workspace)]() -> async::Task<std::set<std::string>> {
    auto kept = co_await kept_by_drivers(remote);
    kept.insert(tagged.begin(), tagged.end());
    co_return kept;
  };
  const store::ArtifactStore unused{std::filesystem::path()};  // Nothing is published.
  remote_cache::RemoteNames names(remote, unused);
  auto cleaned = workspace.await(remote_cache::clean_store(remote.store(), names, std::move(policy),
                                                           note, workspace.run_stop()));
  for (auto& item : cleaned.removed)
    report.removed.push_back({std::move(item.kind), std::move(item.name), item.bytes});
  report.freed = cleaned.bytes;
  return report;
}

}  // namespace pipeline::driver
