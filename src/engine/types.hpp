/// @file
/// Values that several parts of the engine pass to one another.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <pipeline/events.hpp>
#include <pipeline/spec.hpp>

#include "core/error.hpp"
#include "core/file.hpp"
#include "engine/clock.hpp"
#include "orchestrators/orchestrator.hpp"
#include "store/artifact_store.hpp"
#include "store/run_store.hpp"

namespace pipeline::engine {

class Checkpoint;

/// The outcome of a run. `failed` also counts steps with `allow_failure`.
struct RunSummary {
  std::string run;
  RunStatus status;
  std::size_t succeeded = 0, cached = 0, failed = 0, skipped = 0, cancelled = 0;
  bool build_failed = false;
  bool environment_failed = false;
  bool lacks_copies = false;  ///< Some output was not copied to the `publish_to` of its step.
};

/// A step's key: the digest over named parts.
struct StepKey {
  std::string key;
  std::vector<store::KeyPart> parts;
};

/// A step that is reused from an earlier success.
struct Reuse {
  const StepSpec* step;
  store::CacheEntry entry;
};

/// Reserved GPUs, released when this object is destroyed and no process is left that has inherited
/// a descriptor.
struct GpuReservation {
  std::vector<orchestrators::AssignedGpu> gpus;
  std::vector<core::Descriptor> locks;
  gpu::Machine* machine = nullptr;  ///< NVML that sees the GPUs; null if they are elsewhere.
};

/// The end of an attempt: the orchestrator's result, and what the engine adds to it.
struct AttemptOutcome {
  orchestrators::AttemptResult result;
  std::vector<store::OutputRecord> outputs;     ///< Outputs of a successful attempt.
  std::vector<store::ArtifactHold> holds = {};  ///< Hold the outputs until they are recorded.
  core::Phases phases = {};
  std::string code = {};                         ///< Digest of the tree of the step's code, hex.
  std::vector<store::TreeFile> code_files = {};  ///< The files of that tree.
  std::string stored = {};      ///< The ways in which outputs were stored, as in AttemptRecord.
  store::AttemptRecord record;  ///< Record of the attempt's end.
  std::vector<std::string> log_tail;
  std::shared_ptr<const void> folder;      ///< For a success: owns the attempt's folders, which are
                                           ///< removed with it once the success is recorded.
  std::shared_ptr<Checkpoint> checkpoint;  ///< For a success: to be removed once it is recorded.
  std::shared_ptr<const void> key_lock;    ///< Held until the end is recorded (equal_steps.hpp).
};

/// Thrown if the content of an input differs from what its step has made.
class DamagedInput : public core::EnvironmentError {
 public:
  DamagedInput(const std::string& message, std::vector<std::string> advice, std::string producer)
      : EnvironmentError(message, std::move(advice)), producer_(std::move(producer)) {}
  /// The step that made the input.
  const std::string& producer() const { return producer_; }

 private:
  std::string producer_;
};

/// The next attempt after a failed one.
struct Retry {
  std::chrono::milliseconds delay;
  std::optional<Bytes> memory = {};  ///< Its memory limit, if higher than the failed attempt's.
};

/// The beginning of a step, and the numbers of its attempts.
struct AttemptCounts {
  WallTime started = wall_now();
  Clock::time_point start = Clock::now();
  unsigned attempts = 0;
  unsigned failures = 0;       ///< Number of attempts that failed because of the step.
  unsigned interruptions = 0;  ///< Number of attempts that ended because of the infrastructure.
  std::string image = {};      ///< The image of the last attempt, if it has ended.
  /// Nodes and UUIDs of GPUs of the failed attempts, if the step's retries avoid them.
  std::set<std::string> avoided_nodes = {}, avoided_gpus = {};

  /// Adds the node and the GPUs of a failed attempt.
  void avoid(const store::AttemptRecord& failed) {
    if (!failed.node.empty()) avoided_nodes.insert(failed.node);
    for (const auto& gpu : failed.gpus) avoided_gpus.insert(gpu.uuid);
  }
};

/// The progress of a step when its run was interrupted.
struct ResumePoint {
  AttemptCounts counts;
  bool is_open = false;              ///< The last attempt has no recorded end.
  std::string key;                   ///< Key of the step at that time.
  std::optional<Bytes> memory = {};  ///< The last attempt's memory limit.
  bool is_out_of_memory = false;     ///< The last attempt was ended by that limit.
};

}  // namespace pipeline::engine
