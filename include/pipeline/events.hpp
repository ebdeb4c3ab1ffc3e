/// @file
/// What happens in a run, as values: stored, shown in the terminal, printed by `--output json`,
/// handed to callbacks.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <pipeline/chrono.hpp>

namespace pipeline {

using WallTime = std::chrono::time_point<std::chrono::system_clock, std::chrono::milliseconds>;

enum class Stream { out, err };

/// The ends that a step can come to.
enum class StepStatus { pending, running, succeeded, cached, failed, skipped, cancelled };
std::string_view to_string(StepStatus);

/// The ends that a run can come to. `interrupted`: its driver died or was told to stop.
enum class RunStatus { running, succeeded, failed, interrupted };
std::string_view to_string(RunStatus);

/// Why an attempt did not succeed, in words that the user can act on.
enum class FailureKind {
  exit_code,
  exception,
  signal,
  out_of_memory,
  timed_out,
  missing_output,
  not_started,
  cancelled,
  environment,
  build,
  infrastructure
};
std::string_view to_string(FailureKind);

struct Failure {
  FailureKind kind;
  std::string message;               ///< One line: what happened.
  std::vector<std::string> hints;    ///< What to do about it.
  std::vector<std::string> details;  ///< Further lines, such as the last output of a failed build.
};

namespace event {
struct RunStarted {
  std::string run, pipeline, orchestrator;
  std::size_t steps;
  std::vector<std::pair<std::string, std::size_t>> instances =
      {};  ///< Steps that are many, by their matrix, and how many; counted in `steps`.
};
struct BuildStarted {
  std::string image;
  std::vector<std::string> steps;
  std::string reason;
};  ///< Or the making of a virtual environment, or a pull.
struct BuildProgress {
  std::string image, text;
};  ///< One finished line of output or a build step's title.
struct BuildFinished {
  std::string image, id;
  std::chrono::milliseconds took;
  std::optional<Failure> failure;
};
/// A GPU, or a MIG slice of one, that an attempt holds alone.
struct Gpu {
  std::string uuid;
  unsigned index = 0;  ///< In PCI bus order.
  std::string model;
};
struct StepStarted {
  std::string step;
  unsigned attempt;
  std::string image;
  std::vector<Gpu> gpus;
};  ///< Attempts count from 1.
struct StepLog {
  std::string step;
  unsigned attempt;
  Stream stream;
  std::string line;
};  ///< One line, without its end, secrets masked.
struct StepRetried {
  std::string step;
  unsigned attempt;
  Failure failure;
  std::chrono::milliseconds delay;
};  ///< `attempt` is the one that failed.
struct StepWaits {
  std::string step, reason;
};
struct StepFinished {
  std::string step;
  StepStatus status;
  unsigned attempts;
  std::chrono::milliseconds took;
  std::optional<Failure> failure;
  std::string reused_from;
};  ///< reused_from: run identifier of a cached step.
struct Notice {
  std::string step, text;
};  ///< Something the user should know; `step` may be empty.
struct RunFinished {
  std::string run;
  RunStatus status;
  std::chrono::milliseconds took;
};
}  // namespace event

using Event =
    std::variant<event::RunStarted, event::BuildStarted, event::BuildProgress, event::BuildFinished,
                 event::StepStarted, event::StepLog, event::StepRetried, event::StepWaits,
                 event::StepFinished, event::Notice, event::RunFinished>;

/// Receives events in the order in which they happened, on the thread of the run. Must not block.
class EventSink {
 public:
  virtual void emit(const Event& event) = 0;
  virtual ~EventSink() = default;
};

}  // namespace pipeline
