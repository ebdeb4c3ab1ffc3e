/// @file
/// The port between the engine and the places where steps run.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <pipeline/events.hpp>
#include <pipeline/spec.hpp>

#include "async/task.hpp"
#include "core/cancel.hpp"
#include "core/diagnostic.hpp"
#include "core/digest.hpp"
#include "gpu/inventory.hpp"

namespace pipeline::orchestrators {

/// What a place can honour; the engine refuses a spec that asks for more, or says what is ignored.
struct Capabilities {
  std::string name;  ///< `docker`, `local`.
  bool gpus = false;
  bool gpus_of_this_machine = true;  ///< They are the ones that NVML shows here, so the engine
                                     ///< reserves them; else the place itself chooses.
  bool explicit_devices =
      false;  ///< A step may name the very devices that it wants; a cluster chooses itself.
  bool memory_limits = false;
  bool cpu_limits = false;
  bool outlives_driver =
      false;  ///< Attempts go on when the driver is killed, and another one can join them.
  bool on_this_machine = true;  ///< Attempts take its CPUs: as many at a time as it has, unless the
                                ///< user says otherwise.
  unsigned infrastructure_retries = 0;  ///< For steps that do not say: how often attempts are
                                        ///< repeated that ended for no fault of the step.
};

/// What a step would run in, as far as that can be known without making it.
struct Environment {
  std::string id;  ///< Digest over everything that determines it; a part of the cache key. Empty:
                   ///< only known once prepared.
  std::string description;  ///< For people: the image's reference or `Python 3.11.2, venv 1a2b3c`.
  bool ready = false;       ///< Nothing has to be built or pulled.
  std::string reason;  ///< If not ready: what will be made, and why (`new`, `parent image missing`,
                       ///< `requirements changed`).
  std::string recheck;    ///< If ready: what unchanged() needs to see later, cheaply, that this
                          ///< environment is still the same. One line.
  bool resolves = false;  ///< It has Python packages whose versions were chosen when it was made:
                          ///< two machines may have different ones under the same id.
  std::vector<std::string> notices;  ///< What the user should know, such as settings that this
                                     ///< place cannot honour; to be told once a run each.
};

/// One of the artifacts that a gathered input is made of.
struct AttemptPiece {
  std::string file;  ///< Its name in the input's folder.
  std::filesystem::path path;
  std::string digest;
};
/// A step's input or output in this attempt.
struct AttemptInput {
  std::string name;
  std::string file_name;
  std::filesystem::path path;  ///< The artifact on this machine, a file or a folder, read-only.
  std::string digest =
      {};  ///< Its own, in hex; empty: a gathered input, which is no artifact itself ...
  std::vector<AttemptPiece> pieces = {};  ///< ... but links to these, and texts.
};
struct AttemptOutput {
  std::string name;
  std::string file_name;
};

/// Takes what a step prints. Lines may arrive in pieces.
class LogSink {
 public:
  virtual void write(Stream stream, std::string_view bytes) = 0;
  virtual ~LogSink() = default;
};

/// A GPU that an attempt holds alone while it runs. With MIG, a slice of one: its own UUID
/// (`MIG-...`), the index and model of the GPU it is of.
struct AssignedGpu {
  std::string uuid;  ///< `GPU-...` or `MIG-...`, as CUDA_VISIBLE_DEVICES and NVIDIA_VISIBLE_DEVICES
                     ///< take it.
  unsigned index = 0;   ///< The GPU's, in PCI bus order, as nvidia-smi counts.
  std::string model;    ///< As NVML names it: `NVIDIA H100 80GB HBM3`.
  std::string profile;  ///< MIG only: `1g.10gb`.
  Bytes memory = 0;     ///< Bytes.
  int lock = -1;  ///< Descriptor of the reservation; a child process that inherits it keeps the GPU
                  ///< held while it lives. -1: none.
};

/// A GPU that something of ours occupies where an orchestrator runs things, although this run does
/// not know of it.
struct GpuHold {
  std::string uuid;
  std::string run, step;
  std::string place;  ///< For people: `container pipe-7f3a-train-1`.
};

/// One try of one step; all that the place needs to know.
struct Attempt {
  const StepSpec& step;
  std::string pipeline;
  std::string run_id;
  unsigned number;  ///< From 1.
  std::filesystem::path
      code;  ///< Folder with the step's code, read-only, shared with other attempts.
  std::string code_digest = {};  ///< Its own, in hex.
  std::vector<AttemptInput> inputs;
  std::filesystem::path outputs;  ///< Empty folder of this attempt's own; the step's outputs are to
                                  ///< be there at its end, by file_name.
  std::vector<AttemptOutput> output_names;
  std::filesystem::path
      scratch;            ///< Empty folder of this attempt's own, removed by the engine afterwards.
  StringMap environment;  ///< The step's declared environment, the caller's values filled in.
  StringMap secrets;      ///< Never to be stored or shown.
  std::vector<AssignedGpu>
      gpus;  ///< Held for this attempt alone, from before it starts to after its end.
  /// A driver that has died may have begun it, under the same run, step and number: if so it is to
  /// be joined, else begun anew; its folders may have files.
  bool joins = false;
  LogSink& log;
  core::CancelSource& cancel;  ///< The user, fail_fast or the timeout says stop.
};

struct AttemptResult {
  std::optional<Failure> failure;  ///< Nothing: it ended with exit code 0.
  std::optional<int> exit_code;
  std::string image;  ///< What it ran in: an image id, or an interpreter.
  /// Of a place that outlives drivers: to be called once what the attempt made is stored. Until
  /// then a driver that comes after finds it as it ended; after it nothing is left, once settle()
  /// has returned.
  std::function<void()> cleanup;
};

/// Runs attempts of steps in one kind of place: processes, containers or cluster jobs. Used from
/// the loop's thread only.
class Orchestrator {
 public:
  virtual const Capabilities& capabilities() const = 0;
  /// Those of the place where this step will run, in a run that has several.
  virtual const Capabilities& capabilities_of(const StepSpec& step) const {
    (void)step;
    return capabilities();
  }

  /// What stands against running these steps here, as far as it can be told without making
  /// anything: all of it at once. The place of each is the line of its step. Throws
  /// EnvironmentError where the place itself is not to be had.
  virtual async::Task<std::vector<core::Diagnostic>> check(
      const std::vector<const StepSpec*>& steps) {
    (void)steps;
    co_return std::vector<core::Diagnostic>{};
  }

  /// What the step would run in; no side effect. Equal for equal settings.
  virtual async::Task<Environment> environment(const StepSpec& step) = 0;

  /// True if the step that once had an environment with this `recheck` would get an equal one now.
  /// May say no when in doubt.
  virtual async::Task<bool> unchanged(std::string recheck) {
    (void)recheck;
    co_return false;
  }

  /// Digest over the Python packages and versions in a ready environment with `resolves`.
  virtual async::Task<std::string> packages(const StepSpec& step) {
    (void)step;
    co_return std::string();
  }

  /// Makes it ready: builds, pulls. Idempotent; equal environments are made once, different ones
  /// side by side. Throws BuildError or EnvironmentError; returns early with EnvironmentError when
  /// cancelled.
  virtual async::Task<Environment> prepare(const StepSpec& step, EventSink& events,
                                           core::CancelSource& cancel) = 0;

  /// Runs one attempt, in a prepared environment, to its end. When cancelled it stops the step
  /// gracefully (immediate: at once) and returns FailureKind::cancelled. Whatever happens, nothing
  /// of the attempt runs any more, and once settle() has returned, nothing is left of it but what
  /// it wrote to `outputs`.
  virtual async::Task<AttemptResult> run(const Attempt& attempt) = 0;

  /// The GPUs where attempts run, for a place that can tell: asked where NVML on this machine shows
  /// none, or `gpus_of_this_machine` is false, with a step that wants some, in whose environment
  /// the place may look. Nothing: it cannot tell, or chooses itself.
  virtual async::Task<std::optional<gpu::Inventory>> gpus(const StepSpec& step, EventSink& events,
                                                          core::CancelSource& cancel) {
    (void)step, (void)events, (void)cancel;
    co_return std::nullopt;
  }

  /// Which GPUs attempts occupy here, those of other drivers included, whether these live or have
  /// crashed. Asked before free GPUs are handed out.
  virtual async::Task<std::vector<GpuHold>> gpus_in_use() { co_return std::vector<GpuHold>{}; }

  /// Waits for what earlier run() calls clean away beside the steps that follow. To be awaited
  /// before this object goes.
  virtual async::Task<> settle() { co_return; }

  /// Removes an attempt that a dead driver has begun and this one does not want to join, with all
  /// that runs of it. For places that outlive drivers.
  virtual async::Task<> discard_attempt(const std::string& run_id, const std::string& step,
                                        unsigned number) {
    (void)run_id, (void)step, (void)number;
    co_return;
  }

  /// Removes what earlier runs whose driver is dead have left: `is_alive(run_id)` says which still
  /// have one.
  virtual async::Task<> remove_orphans(const std::function<bool(const std::string&)>& is_alive) = 0;

  virtual ~Orchestrator() = default;
};

/// Where in Attempt::scratch a step may leave the reason of its failure (`{"type": ..., "message":
/// ..., "where": ..., "causes": [...]}`); its own path of it is in PIPE_FAILURE_FILE.
inline constexpr std::string_view failure_file_name = "failure.json";

/// Where a step finds its files, as it will see the paths itself.
struct Layout {
  std::string code, inputs, outputs;  ///< Folders.
  std::string scratch;  ///< A folder that the step may write to, gone with the attempt.
  std::vector<std::string>
      program;  ///< For a step with StepSpec::program: the words that start the program.
};

/// `.csv` of `data.csv`, `.tar.gz` of `data.tar.gz`, nothing of `data`.
std::string extension_of(const std::string& file_name);

/// `INPUTS/NAME.EXT`, with the extension of the file that the step before wrote.
std::string path_of(const AttemptInput& input, const Layout& layout);
std::string path_of(const AttemptOutput& output, const Layout& layout);

/// The argument vector of an attempt with this layout: placeholders filled, a shell's words put
/// before its line.
std::vector<std::string> command_of(const Attempt& attempt, const Layout& layout);
/// True for a shell's line with a pipe in it.
bool has_pipe(const Command& command);
/// Variables that describe the attempt (PIPE_INPUT_X, PIPE_OUTPUT_X, PIPE_PARAM_X and PIPE_PARAM_x,
/// PIPE_RUN_ID, PIPE_STEP_NAME, PIPE_ATTEMPT, PIPE_SCRATCH, PIPE_FAILURE_FILE), the declared
/// environment, the settings' runtime_environment and the secrets; later ones win in this order.
StringMap variables_of(const Attempt& attempt, const Layout& layout);

}  // namespace pipeline::orchestrators
