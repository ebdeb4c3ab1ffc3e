/// @file
/// Limits how many steps of a run are in progress. A step in progress is a coroutine of some 13 KB
/// and holds a lock of its key, and the kernel searches the locks of a process one after the other.
/// So ready steps that would only wait for a job slot stay in the walk's queues, as numbers.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <pipeline/spec.hpp>

#include "engine/gpu/gpu_reserver.hpp"
#include "engine/run/job_slots.hpp"
#include "orchestrators/routes.hpp"

namespace pipeline::engine {

class StepsInProgress {
 public:
  StepsInProgress(orchestrators::Routes& routes, const GpuReserver& gpus, const JobSlots& slots)
      : routes_(routes), gpus_(gpus), slots_(slots) {}

  /// Returns the number of the queue in which the step waits for its turn: each matrix has one, so
  /// that instances whose image is being built keep no other step from its slot. Returns nothing if
  /// the step may also have to wait for GPUs, for other steps or for a person.
  std::optional<std::size_t> queue_of(const StepSpec& step);
  /// Returns true if a further step of the queue may be in progress.
  bool has_room(std::size_t queue) const;

  /// Counts the step as in progress until the result is destroyed.
  using Place = std::unique_ptr<unsigned, void (*)(unsigned*)>;
  Place add(const StepSpec& step);

 private:
  struct Queue {
    unsigned limit;      ///< Maximum of `count`: the job slots, and some steps that prepare.
    unsigned count = 0;  ///< Number of steps in progress.
  };

  orchestrators::Routes& routes_;
  const GpuReserver& gpus_;
  const JobSlots& slots_;
  std::deque<Queue> queues_;
  std::map<std::string, std::size_t> numbers_;  ///< Numbers of queues, by orchestrator and matrix.
};

}  // namespace pipeline::engine
