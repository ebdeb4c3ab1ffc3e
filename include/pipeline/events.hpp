/// @file
/// The events of a run as values: stored, shown in the terminal, printed by `--output json`, and
/// passed to callbacks.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace pipeline {

/// A time of the system clock, in milliseconds.
using WallTime = std::chrono::time_point<std::chrono::system_clock, std::chrono::milliseconds>;

/// Standard output or standard error.
enum class Stream { out, err };

/// The states of a step. `cached`: an earlier result was reused. `skipped`: the step was not run,
/// because of its condition or of another step's failure.
enum class StepStatus { pending, running, succeeded, cached, failed, skipped, cancelled };
std::string_view to_string(StepStatus);

/// The states of a run. `interrupted`: the run was cancelled, or its process died.
enum class RunStatus { running, succeeded, failed, interrupted };
std::string_view to_string(RunStatus);

/// Why an attempt did not succeed.
enum class FailureKind {
  exit_code,       ///< The command ended with another code than 0.
  exception,       ///< A step's function threw an exception.
  signal,          ///< A signal that pipe did not send ended the process.
  out_of_memory,   ///< The attempt exceeded its memory limit or the machine's memory.
  timed_out,       ///< The attempt took longer than `timeout`.
  stalled,         ///< Nothing was printed for `stalled_after`, and `retry.stalled` is set.
  missing_output,  ///< The step succeeded and did not write an output.
  bad_output,      ///< An output cannot be kept, such as a socket.
  not_started,     ///< The command could not be executed.
  cancelled,       ///< Ended by Ctrl-C, `cancel`, or another step's failure under fail_fast.
  environment,     ///< The machine lacks something, such as disk space or a permission.
  build,           ///< The step's image or virtual environment could not be built.
  infrastructure   ///< The step did not cause the failure: a lost node, a restarted engine.
};
std::string_view to_string(FailureKind);

/// A failed attempt, described in terms that the user can act on.
struct Failure {
  FailureKind kind;
  /// Describes the failure in a line.
  std::string message;
  /// Suggestions for the user.
  std::vector<std::string> hints = {};
  /// Further lines, such as the last output of a failed build.
  std::vector<std::string> details = {};
};

namespace event {
struct RunStarted {
  std::string run, pipeline, orchestrator;
  std::size_t steps;
  /// Steps with a matrix, and how many instances each has; counted in `steps`.
  std::vector<std::pair<std::string, std::size_t>> instances = {};
};
/// The build of an image or a virtual environment, or the pull of an image.
struct BuildStarted {
  std::string image;
  std::vector<std::string> steps;
  std::string reason;
};
/// A line of the build's output, or the title of a build step.
struct BuildProgress {
  std::string image, text;
};
struct BuildFinished {
  std::string image;
  std::string id;  ///< The image's ID, or the digest of the virtual environment; empty on failure.
  std::chrono::milliseconds took;
  std::optional<Failure> failure;
};
/// A GPU, or a MIG slice of one, that is reserved for an attempt.
struct Gpu {
  std::string uuid;
  unsigned index = 0;  ///< In PCI bus order.
  std::string model;
  std::optional<unsigned> slice = {};  ///< Index of the MIG slice on the GPU.
};
struct StepStarted {
  std::string step;
  unsigned attempt;  ///< Counted from 1, in all events.
  std::string image;
  std::vector<Gpu> gpus;
};
struct StepLog {
  std::string step;
  unsigned attempt;
  Stream stream;
  std::string line;                   ///< Without its line break; secrets are masked.
  std::optional<unsigned> rank = {};  ///< Rank of the process, in a step with nodes.
};
/// The latest state of a line that a running step rewrites, such as a progress bar. The log has the
/// whole output; a StepLog follows once the step ends the line.
struct StepProgress {
  std::string step;
  unsigned attempt;
  std::string row;  ///< Without its line break; secrets are masked.
};
struct StepRetried {
  std::string step;
  unsigned attempt;  ///< Number of the failed attempt.
  Failure failure;
  std::chrono::milliseconds delay;
  /// The next attempt's limit in bytes, if the failed one had too little and the next gets more.
  std::optional<std::uint64_t> memory = {};
};
struct StepWaits {
  std::string step, reason;
};
struct StepFinished {
  std::string step;
  StepStatus status;
  unsigned attempts;
  std::chrono::milliseconds took;
  std::optional<Failure> failure;
  std::string reused_from;  ///< For a cached step: the identifier of the run that made its outputs.
  std::string reason = {};  ///< Why the step was not started; empty for others.
};
/// A message about a setting or condition that changes no result.
struct Notice {
  std::string step, text;  ///< `step` may be empty.
};
/// A step has become its instances, because the values of its matrix are known now, or the steps of
/// another round begin.
struct StepExpanded {
  std::string step;
  std::size_t instances;
  std::size_t steps;                   ///< Number of the run's steps, including the instances.
  std::optional<unsigned> round = {};  ///< The round of a repeated step, from 0.
};
struct RunFinished {
  std::string run;
  RunStatus status;
  std::chrono::milliseconds took;
};
}  // namespace event

using Event =
    std::variant<event::RunStarted, event::BuildStarted, event::BuildProgress, event::BuildFinished,
                 event::StepStarted, event::StepLog, event::StepProgress, event::StepRetried,
                 event::StepWaits, event::StepFinished, event::Notice, event::StepExpanded,
                 event::RunFinished>;

/// Receives events in the order in which they happened, on the thread of the run. Must not block.
class EventSink {
 public:
  virtual void emit(const Event& event) = 0;
  virtual ~EventSink() = default;
};

}  // namespace pipeline
