/// @file
/// The fingerprint of a successful run: the state of everything that the run looked at. While none
/// of these things changes, the next run has nothing to do, and finds this out without reading the
/// pipeline.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/options.hpp"
#include "engine/services.hpp"
#include "engine/types.hpp"

namespace pipeline::engine {

/// Collected during a run, stored when it succeeds.
class RunFingerprint {
 public:
  /// @param identity the run's request: the file and every relevant option
  /// @param now      current time, to detect files that changed too recently to be trusted
  explicit RunFingerprint(std::string identity,
                          store::WallClock now = std::chrono::system_clock::now)
      : identity_(std::move(identity)), now_(now) {}

  /// Adds a file, a folder (its entries), or a missing path, in its current state.
  void add_path(const std::filesystem::path& path);
  /// Adds a variable of the user's environment, set or not.
  void add_variable(const std::string& name);
  /// Adds Environment::fingerprint; if empty, the environment cannot be checked cheaply, so no
  /// fingerprint is stored.
  void add_environment(const std::string& environment);
  /// Adds an output of a step.
  void add_artifact(const core::Digest& artifact) { artifacts_.push_back(artifact); }
  /// Notes that a later run must check something that a fingerprint cannot show; save() then stores
  /// none.
  void invalidate() { is_invalid_ = true; }

  /// Stores the fingerprint, or removes the stored one after invalidate().
  /// @param run     the run in whose records the steps are
  /// @param skipped how many of the steps were skipped by their conditions
  /// @param tags    tags that the pipeline gives its runs
  void save(store::RunStore& store, const std::string& run, std::size_t steps,
            std::size_t skipped = 0, const std::vector<std::string>& tags = {}) const;

 private:
  struct Entry {
    std::string path, stamp;
  };
  std::string identity_;
  store::WallClock now_;
  std::vector<Entry> files_;
  std::vector<Entry> variables_;
  std::vector<std::string> environments_;
  std::vector<core::Digest> artifacts_;
  bool is_invalid_ = false;
};

/// Adds the files of the spec, and the code, data and variables of the steps, in their state at the
/// beginning of a run, so that the next run notices what changes during this one. Invalidates the
/// fingerprint for steps that each run has to check.
/// @param sources files that the spec was made from, besides the steps' code
void look_at_sources(RunFingerprint& fingerprint, const Services& services,
                     const std::vector<std::filesystem::path>& sources,
                     const std::vector<const StepSpec*>& steps);

/// If a fingerprint for `options.identity` is still valid: records a run that reused every step of
/// that run, emits its events, and returns its summary. Needs no spec.
async::Task<std::optional<RunSummary>> reuse_by_fingerprint(orchestrators::Routes& routes,
                                                            store::RunStore& store,
                                                            store::ArtifactStore& artifacts,
                                                            EventSink& events,
                                                            EngineOptions options);

}  // namespace pipeline::engine
