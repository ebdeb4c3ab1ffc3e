/// @file
/// The port between the engine and the orchestrators, which run steps.
#pragma once

#include <chrono>
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
#include "core/usage.hpp"
#include "gpu/inventory.hpp"
#include "orchestrators/catalog/catalog.hpp"

namespace pipeline::orchestrators {

/// What an orchestrator supports. The engine rejects a spec that needs more, or reports what is
/// ignored.
struct Capabilities {
  std::string name;  ///< `docker`, `local`.
  Traits traits = {};
  bool gpus = false;
  bool gpus_of_this_machine =
      true;  ///< The GPUs are those that NVML shows on this machine, so the engine reserves them;
             ///< otherwise the orchestrator itself chooses GPUs.
  bool explicit_devices =
      false;            ///< A step may name specific devices; a cluster chooses them itself.
  bool shells = false;  ///< Attempt::shell is honoured.
  bool memory_limits = false;
  bool cpu_limits = false;
  bool outlives_driver =
      false;  ///< Attempts continue when the driver is killed, and another driver can join them.
  bool fetches_addresses = false;  ///< AttemptInput::remote is honoured.
  bool on_this_machine = true;     ///< Attempts use this machine's CPUs: by default, as many run
                                   ///< concurrently as there are CPUs.
  /// Names of the folders that the orchestrator creates in Attempt::scratch. When an attempt
  /// begins, they may exist without files, left from an earlier attempt.
  std::vector<std::string> scratch_folders = {};
  unsigned infrastructure_retries = 0;  ///< Default number of retries of attempts that ended
                                        ///< because of an infrastructure failure.
};

/// What a step would run in, as far as it is known without building it.
struct Environment {
  std::string id;  ///< Digest over everything that determines the environment; a part of the cache
                   ///< key. Empty if it is known only after prepare().
  std::string
      description;        ///< For messages: the image's reference or `Python 3.11.2, venv 1a2b3c`.
  bool ready = false;     ///< Nothing has to be built or pulled.
  std::string reason;     ///< If not ready: what will be built, and why (`new`, `parent image
                          ///< missing`, `requirements changed`).
  std::string recheck;    ///< If ready: a one-line text with which unchanged() can later check
                          ///< cheaply that the environment is still the same.
  bool resolves = false;  ///< Versions of its Python packages were chosen when it was made, so they
                          ///< can differ between machines under the same id.
  std::vector<std::string> notices;  ///< Notices for the user, such as settings that this
                                     ///< orchestrator does not support; each is shown once a run.
};

/// One of the artifacts that a gathered input consists of.
struct AttemptPiece {
  std::string file;  ///< Its name in the input's folder.
  std::filesystem::path path;
  std::string digest;
};
/// A file at an address.
struct RemoteFile {
  std::string path;  ///< In the folder; empty for content that is a file itself.
  std::string url;   ///< Gives the content without a login, for some days; may be a secret.
};
/// Content at an address, for executors with Capabilities::fetches_addresses.
struct RemoteContent {
  std::string shown;       ///< The address for messages.
  std::string server;      ///< What answers there or does not.
  std::uint64_t size = 0;  ///< In bytes; 0: not known.
  bool is_folder = false;
  bool is_public = false;  ///< Of a server on the Internet, not of a bucket.
  /// Returns a file, or all that the folder has. Throws EnvironmentError.
  std::function<async::Task<std::vector<RemoteFile>>()> files = {};
  /// Brings the content to AttemptInput::path, unless it is there. Throws EnvironmentError.
  std::function<async::Task<>(core::CancelSource&)> fetch = {};
};

/// A step's input in this attempt.
struct AttemptInput {
  std::string name;
  std::string file_name;
  std::filesystem::path path;  ///< The artifact on this machine, a read-only file or folder; see
                               ///< `remote`.
  std::string digest = {};  ///< The artifact's digest in hex; empty for a gathered input, which is
                            ///< no artifact itself.
  std::vector<AttemptPiece> pieces =
      {};  ///< The artifacts that a gathered input links to, and texts.
  /// Where the content is, for an executor that fetches it: `path` may not be there yet.
  std::optional<RemoteContent> remote = {};
};
struct AttemptOutput {
  std::string name;
  std::string file_name;
};

/// Receives a step's output. Lines may arrive in pieces.
class LogSink {
 public:
  virtual void write(Stream stream, std::string_view bytes) = 0;
  virtual ~LogSink() = default;
};

/// A GPU that an attempt holds alone while it runs. For a MIG slice: its own UUID (`MIG-...`), with
/// the index and model of its GPU.
struct AssignedGpu {
  std::string uuid;  ///< `GPU-...` or `MIG-...`, as CUDA_VISIBLE_DEVICES and NVIDIA_VISIBLE_DEVICES
                     ///< accept it.
  unsigned index = 0;   ///< Index of the GPU in PCI bus order, as in nvidia-smi.
  std::string model;    ///< NVML's name: `NVIDIA H100 80GB HBM3`.
  std::string profile;  ///< MIG only: `1g.10gb`.
  Bytes memory = 0;     ///< Bytes.
  int lock = -1;  ///< Descriptor of the reservation; a child process that inherits it keeps the GPU
                  ///< reserved while it lives. -1: none.
};

/// A GPU in use by an attempt of pipe that this run does not know of, where the orchestrator runs
/// attempts.
struct GpuHold {
  std::string uuid;
  std::string run, step;
  std::string place;  ///< What uses it, for messages: `container pipe-7f3a-train-1`.
};

/// Words that are executed on the user's terminal in place of a step's command.
struct ShellRequest {
  std::vector<std::string> words;  ///< At least one.
  bool has_terminal = false;       ///< Standard input and output of this process are a terminal.
  std::string id = {};             ///< Unique among all shells: a valid run identifier.
  std::string image = {};  ///< Image of the container to have: identifier or reference; empty: the
                           ///< step's.
};

/// One attempt of one step, with everything that the orchestrator needs.
struct Attempt {
  const StepSpec& step;
  std::string pipeline;
  std::string run_id;
  unsigned number;  ///< From 1.
  std::filesystem::path
      code;  ///< Folder with the step's code, read-only, shared with other attempts.
  std::string code_digest = {};  ///< Digest of the code in hex.
  std::vector<AttemptInput> inputs;
  std::filesystem::path outputs;  ///< Empty folder of this attempt; it must contain the step's
                                  ///< outputs at the end, by file_name.
  std::vector<AttemptOutput> output_names;
  std::filesystem::path scratch;  ///< Folder of this attempt, emptied by the engine afterwards:
                                  ///< empty except for Capabilities::scratch_folders.
  /// Folder that keeps the step's progress until it succeeds; empty: the step has none. It may
  /// contain files of earlier attempts.
  std::filesystem::path checkpoint = {};
  /// Names that folder for orchestrators that keep it elsewhere: the step's key. Empty: what is
  /// written there is lost with the attempt.
  std::string checkpoint_key = {};
  /// Makes the content of another folder on the same file system that of `checkpoint`, all at once.
  std::function<void(const std::filesystem::path&)> replace_checkpoint = {};
  StringMap environment;  ///< The step's declared environment, with values of the user's
                          ///< environment filled in.
  StringMap secrets;      ///< Must never be stored or shown.
  std::vector<AssignedGpu>
      gpus;  ///< Reserved for this attempt alone, from before its start until after its end.
  /// A driver that has died may have begun this attempt, under the same run, step and number. If
  /// so, it is joined, otherwise started; its folders may contain files.
  bool joins = false;
  std::optional<ShellRequest> shell = {};  ///< For orchestrators with Capabilities::shells.
  LogSink& log;
  /// Called once the step's command is known to be running, by orchestrators whose attempts may
  /// have to wait until they begin.
  std::function<void()> on_began = {};
  core::CancelSource& cancel;  ///< Stopped by the user, fail_fast or the timeout.
};

struct AttemptResult {
  std::optional<Failure> failure;  ///< Unset if the attempt ended with exit code 0.
  std::optional<int> exit_code;
  std::string image;  ///< What the attempt ran in: an image id, or an interpreter.
  core::Usage usage = {};
  std::string node = {};  ///< Name of the machine that the attempt ran on; empty: not known.
  /// When the step's command was started and had ended, as far as it is known.
  std::optional<std::chrono::steady_clock::time_point> began = {}, ended = {};
  /// Parts of the time before `began` and after `ended` in which files went to where the step ran,
  /// and came from there.
  std::chrono::nanoseconds moved_in{}, moved_out{};
  /// For orchestrators whose attempts outlive drivers: call it once the attempt's outputs are
  /// stored. Until then a later driver finds the attempt as it ended; afterwards everything is
  /// removed once settle() has returned.
  std::function<void()> cleanup;
  /// For orchestrators that keep the checkpoint elsewhere: call it once the step's success is
  /// stored.
  std::function<void()> remove_checkpoint = {};
  /// GPUs that it was seen to have, where they are assigned elsewhere than by a reservation.
  std::vector<event::Gpu> gpus;
};

/// Runs attempts of steps in one kind of environment: processes, containers or cluster Jobs. Used
/// only from the loop's thread.
class Orchestrator {
 public:
  virtual const Capabilities& capabilities() const = 0;
  /// Capabilities of the orchestrator that runs this step, in a run with several orchestrators.
  virtual const Capabilities& capabilities_of(const StepSpec& step) const {
    (void)step;
    return capabilities();
  }

  /// Returns everything that prevents these steps from running here, as far as it is known without
  /// creating anything. The position of each diagnostic is its step's line. Throws EnvironmentError
  /// if the orchestrator itself is not available.
  virtual async::Task<std::vector<core::Diagnostic>> check(
      const std::vector<const StepSpec*>& steps) {
    (void)steps;
    co_return std::vector<core::Diagnostic>{};
  }

  /// Returns what the step would run in, without side effects. Equal for equal settings.
  virtual async::Task<Environment> environment(const StepSpec& step) = 0;

  /// Returns true if a step whose environment had this `recheck` would get an equal one now. May
  /// return false if in doubt.
  virtual async::Task<bool> unchanged(std::string recheck) {
    (void)recheck;
    co_return false;
  }

  /// Returns a digest over the Python packages and versions in a ready environment with `resolves`.
  virtual async::Task<std::string> packages(const StepSpec& step) {
    (void)step;
    co_return std::string();
  }

  /// Makes the environment ready: builds, pulls. Idempotent; equal environments are made once,
  /// different ones concurrently. Throws BuildError or EnvironmentError; when cancelled, returns
  /// early with EnvironmentError.
  virtual async::Task<Environment> prepare(const StepSpec& step, EventSink& events,
                                           core::CancelSource& cancel) = 0;

  /// Resolves the step's Python requirements, if the lock file does not have them yet, and makes
  /// nothing else but what that needs. Throws as prepare() does.
  virtual async::Task<> lock(const StepSpec& step, EventSink& events, core::CancelSource& cancel) {
    (void)step, (void)events, (void)cancel;
    co_return;
  }

  /// Runs one attempt in a prepared environment to its end. When cancelled, stops the step
  /// gracefully (immediate: at once) and returns FailureKind::cancelled. When this returns or
  /// throws, no process of the attempt is running; once settle() has returned, only its files in
  /// `outputs` are left.
  virtual async::Task<AttemptResult> run(const Attempt& attempt) = 0;

  /// Returns what the processes of an attempt in progress wait in, a line each, as far as this
  /// machine can see them: `4711 python3 train.py: sleeps in futex_wait_queue`.
  virtual async::Task<std::vector<std::string>> waits_of(const Attempt& attempt) {
    (void)attempt;
    co_return std::vector<std::string>{};
  }

  /// Returns the GPUs of the machine where attempts run, for orchestrators that can list them.
  /// Called if NVML on this machine shows none or `gpus_of_this_machine` is false, with a step that
  /// needs GPUs and in whose environment the orchestrator may look. Returns nothing if it cannot
  /// list them, or chooses GPUs itself.
  virtual async::Task<std::optional<gpu::Inventory>> gpus(const StepSpec& step, EventSink& events,
                                                          core::CancelSource& cancel) {
    (void)step, (void)events, (void)cancel;
    co_return std::nullopt;
  }

  /// Returns the GPUs that attempts use here, including those of other drivers, alive or dead.
  /// Called before free GPUs are assigned.
  virtual async::Task<std::vector<GpuHold>> gpus_in_use() { co_return std::vector<GpuHold>{}; }

  /// Waits for removals that earlier run() calls have begun. Must be awaited before this object is
  /// destroyed.
  virtual async::Task<> settle() { co_return; }

  /// Removes an attempt that a dead driver has begun and this one does not join, with all its
  /// processes. For orchestrators whose attempts outlive drivers.
  virtual async::Task<> discard_attempt(const std::string& run_id, const std::string& step,
                                        unsigned number) {
    (void)run_id, (void)step, (void)number;
    co_return;
  }

  /// Removes what earlier runs with dead drivers have left. @param is_alive returns true for a run
  /// of this state folder that still has a driver, and false for runs of other state folders: what
  /// those have started is recognized by its owner (owner_of()) and left alone
  virtual async::Task<> remove_orphans(const std::function<bool(const std::string&)>& is_alive) = 0;

  virtual ~Orchestrator() = default;
};

/// File in Attempt::scratch in which a step may leave the reason of its failure (`{"type": ...,
/// "message": ..., "where": ..., "causes": [...]}`); the step finds its path in PIPE_FAILURE_FILE.
inline constexpr std::string_view failure_file_name = "failure.json";

/// The paths at which a step sees its files.
struct Layout {
  std::string code, inputs, outputs;  ///< Folders.
  std::string scratch;  ///< A folder that the step may write to; removed with the attempt.
  std::vector<std::string>
      program;  ///< For a step with StepSpec::program: the command that starts the program.
  std::string checkpoint = {};  ///< The folder of Attempt::checkpoint.
};

/// Returns `.csv` for `data.csv`, `.tar.gz` for `data.tar.gz`, and an empty text for `data`.
std::string extension_of(const std::string& file_name);

/// Returns `INPUTS/NAME.EXT`, with the extension of the file that the earlier step wrote.
std::string path_of(const AttemptInput& input, const Layout& layout);
std::string path_of(const AttemptOutput& output, const Layout& layout);

/// Returns the argument vector of an attempt with this layout: placeholders filled in, and a
/// shell's words before its line.
std::vector<std::string> command_of(const Attempt& attempt, const Layout& layout);
/// Returns true for a shell line that contains a pipe.
bool has_pipe(const Command& command);
/// Returns the variables that describe the attempt (PIPE_INPUT_X, PIPE_OUTPUT_X, PIPE_PARAM_X and
/// PIPE_PARAM_x, PIPE_RUN_ID, PIPE_STEP_NAME, PIPE_ATTEMPT, PIPE_SCRATCH, PIPE_FAILURE_FILE), the
/// declared environment, the settings' runtime_environment and the secrets; later ones take
/// precedence in this order. For a shell, PIPE_COMMAND has the step's command.
StringMap variables_of(const Attempt& attempt, const Layout& layout);

}  // namespace pipeline::orchestrators
