/// @file
/// A run that succeeded, with all that it looked at: as long as none of that has changed, the next
/// run has nothing to do, and knows so without reading the pipeline.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/run.hpp"

namespace pipeline::engine {

/// Collected in the course of a run, stored when it ends well.
class RunFingerprint {
 public:
  /// @param identity what was asked for: the file and every option that matters
  /// @param now      tells which files have changed too recently to be trusted
  explicit RunFingerprint(std::string identity,
                          store::WallClock now = std::chrono::system_clock::now)
      : identity_(std::move(identity)), now_(now) {}

  /// A file, a folder (its entries), or a path where nothing is; remembered as it stands now.
  void looked_at(const std::filesystem::path& path);
  /// A variable of the caller's environment, set or not.
  void took_variable(const std::string& name);
  /// Environment::recheck; empty: this environment can't be checked cheaply, so there will be no
  /// memo.
  void ran_in(const std::string& recheck);
  void made(const core::Digest& artifact) { artifacts_.push_back(artifact); }
  /// Something that a later run must look into by itself.
  void invalidate() { spoiled_ = true; }

  /// @param run the run whose rows tell the steps
  void save(store::RunStore& runs, const std::string& run, std::size_t steps) const;

 private:
  struct Entry {
    std::string path, stamp;
  };
  std::string identity_;
  store::WallClock now_;
  std::vector<Entry> files_;
  std::vector<Entry> variables_;
  std::vector<std::string> rechecks_;
  std::vector<core::Digest> artifacts_;
  bool spoiled_ = false;
};

/// Looks at what the spec and the steps were made from, as it is at the beginning of a run: the
/// next run notices a file that changes in the course of this one.
/// @param sources what the spec was made from, besides the steps' code
void look_at_sources(RunFingerprint& fingerprint, const Services& services,
                     const std::vector<std::filesystem::path>& sources,
                     const std::vector<const StepSpec*>& steps);

/// If a memo for this identity still holds: records a run that reused every step of the remembered
/// one, tells it as events, and returns its summary. Steps are told one by one only if `each_step`.
/// Needs no spec.
async::Task<std::optional<RunSummary>> reuse_by_fingerprint(
    std::string identity, orchestrators::Orchestrator& orchestrator, store::RunStore& runs,
    store::ArtifactStore& artifacts, EventSink& events, RunOptions options, bool each_step);

}  // namespace pipeline::engine
