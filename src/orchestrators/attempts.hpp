/// @file
/// The part of the port that runs attempts of steps.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <pipeline/events.hpp>
#include <pipeline/spec.hpp>

#include "async/task.hpp"
#include "core/activity.hpp"
#include "core/cancel.hpp"
#include "core/error.hpp"
#include "core/usage.hpp"
#include "model/elsewhere.hpp"
#include "orchestrators/attempt_pieces.hpp"

namespace pipeline::orchestrators {

/// A file of RemoteContent.
struct RemoteFile {
  std::string path;  ///< Relative to the content's folder; empty if the content is a file itself.
  std::string url;   ///< Readable without a login for some days; may contain a secret.
};
/// Content at an address, for executors with Capabilities::fetches_addresses.
struct RemoteContent {
  std::string shown;       ///< The address for messages.
  std::string server;      ///< The responding part of the address, for messages.
  std::uint64_t size = 0;  ///< In bytes; 0: not known.
  bool is_folder = false;
  bool is_public = false;  ///< The server is on the Internet, not a bucket.
  /// Returns the content's only file, or all files of its folder. Throws EnvironmentError.
  std::function<async::Task<std::vector<RemoteFile>>()> files = {};
  /// Downloads the content to AttemptInput::path, unless it is there already. Throws
  /// EnvironmentError.
  std::function<async::Task<>(core::CancelSource&)> fetch = {};
};

/// A step's input in this attempt.
struct AttemptInput {
  std::string name;
  std::string file_name;
  std::filesystem::path path;  ///< The artifact on this machine, a read-only file or folder; absent
                               ///< at first with `remote`, always with `elsewhere`.
  std::string digest = {};  ///< The artifact's digest in hex; empty for a gathered input, which is
                            ///< not an artifact itself.
  /// The artifacts of a gathered input, where attempts run elsewhere: on this machine, the folder
  /// at `path` has links to them.
  AttemptPieces pieces = {};
  /// The content's address, for an orchestrator that fetches it; `path` may not exist yet.
  std::optional<RemoteContent> remote = {};
  /// Set for an artifact that only the remote store has, for executors with
  /// Capabilities::takes_elsewhere: there is nothing at `path`.
  std::optional<model::Elsewhere> elsewhere = {};
};
/// Thrown if an artifact among an attempt's inputs is damaged or missing in the remote store from
/// which the attempt reads it, and this machine does not have the artifact either.
class LostInput : public core::EnvironmentError {
 public:
  LostInput(const std::string& message, std::string digest)
      : core::EnvironmentError(message), digest_(std::move(digest)) {}
  const std::string& digest() const { return digest_; }

 private:
  std::string digest_;
};
struct AttemptOutput {
  std::string name;
  std::string file_name;
  bool from_all_nodes = false;  ///< Each node writes its own part of the output.
  /// The orchestrator may leave the content in a remote store, see AttemptResult::elsewhere.
  bool may_stay = false;
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
  std::optional<unsigned> slice = {};  ///< MIG only: index of the slice on the GPU.
};

/// Words that are executed on the user's terminal in place of a step's command.
struct ShellRequest {
  std::vector<std::string> words;  ///< At least one.
  bool has_terminal = false;       ///< Standard input and output of this process are a terminal.
  std::string id = {};             ///< Unique among all shells: a valid run identifier.
  std::string image = {};  ///< Identifier or reference of the image for the shell's container;
                           ///< empty: the step's image.
  unsigned node = 0;       ///< Number of the node that the shell is on, for a step with nodes.
};

/// A process of an attempt in progress, which another driver may have begun.
struct RunningProcess {
  std::string run_id, step;
  unsigned number = 1;                ///< Number of the attempt, from 1.
  std::optional<unsigned> rank = {};  ///< Set for a step with nodes.
  unsigned first_rank_of_node = 0;    ///< The lowest rank on the process's node.
  unsigned node = 0;                  ///< Number of its node, from 0.
};

/// The addresses at which the processes of an attempt with nodes reach one another. A session is
/// one run() of the port on behalf of such an attempt: it runs one process, or with an agent all
/// processes of a node.
struct NodeAddresses {
  std::vector<std::string> nodes;  ///< Names or IP addresses, by the node's number.
  /// The first of as many consecutive free ports as the attempt has processes.
  unsigned port = 0;
  std::string network = {};  ///< Name of the network that the orchestrator made; may be empty.
  /// A session runs a whole node: its agent starts the node's processes (agent/ranks.hpp).
  bool has_agents = false;
  /// All nodes share one description, such as one Job, which has `node_mark` (nodes.hpp) in place
  /// of their numbers.
  bool nodes_share_description = false;
  /// A password among the agents, for machines on which other users see command lines and reach the
  /// agents' ports; empty: agents do not ask for one.
  std::string secret = {};
  /// Free port for NCCL's state (NCCL_RAS_ADDR), where attempts share a machine, so that NCCL's
  /// default port may be taken; 0: the default port.
  unsigned nccl_port = 0;
  std::size_t gpus = 0;   ///< GPUs of each node, if the engine has not reserved any; otherwise 0.
  unsigned restarts = 0;  ///< How often the gang has restarted all processes in this attempt;
                          ///< restarts by agents do not count.
  unsigned tries = 0;     ///< How often `gives_back` was set in this attempt before.
  /// Set by a session that cannot start, because other jobs hold what its node needs. The gang then
  /// releases everything that the attempt holds, and tries again after a pause.
  mutable bool gives_back = false;
};

/// A process of an attempt with nodes, or with NodeAddresses::has_agents the first process of a
/// node. The orchestrator runs it as an attempt, beside others with the same run, step and number.
struct NodeProcess {
  unsigned rank = 0, ranks = 1;              ///< Number among all processes, and how many they are.
  unsigned node = 0, nodes = 1;              ///< Number of its node, and how many nodes there are.
  unsigned local_rank = 0, local_ranks = 1;  ///< Number among the processes of its node.
  std::size_t gpus_of_node = 0;              ///< GPUs that its node has.
  const NodeAddresses* addresses = nullptr;  ///< Never null.
};

/// An attempt of a step as data: everything that determines its start.
struct AttemptSpec {
  const StepSpec& step;
  std::string pipeline;
  std::string run_id;
  unsigned number;  ///< From 1.
  /// Folder with the step's code, read-only, shared with other attempts.
  std::filesystem::path code;
  std::string code_digest = {};  ///< Digest of the code in hex.
  std::vector<AttemptInput> inputs;
  std::filesystem::path outputs;  ///< Empty folder of this attempt; it must contain the step's
                                  ///< outputs at the end, by file_name.
  std::vector<AttemptOutput> output_names;
  std::filesystem::path scratch;  ///< Folder of this attempt, emptied by the engine afterwards:
                                  ///< empty except for Capabilities::scratch_folders.
  /// Folder that keeps the step's progress until it succeeds, with the files of earlier attempts;
  /// empty: the step has none.
  std::filesystem::path checkpoint = {};
  /// The step's key, which names the checkpoint for orchestrators that keep it elsewhere. Empty:
  /// these lose the checkpoint with the attempt.
  std::string checkpoint_key = {};
  StringMap environment;  ///< The step's declared environment, with values of the user's
                          ///< environment filled in.
  StringMap secrets;      ///< Must never be stored or shown.
  /// Nodes that the step should run on only if there are no others.
  std::vector<std::string> avoided_nodes = {};
  /// Reserved for this attempt alone, from before its start until after its end.
  std::vector<AssignedGpu> gpus;
  /// A driver that has died may have begun this attempt, under the same run, step and number. If
  /// so, it is joined, otherwise started; its folders may contain files.
  bool joins = false;
  std::optional<ShellRequest> shell = {};  ///< For orchestrators with Capabilities::shells.
  /// Set for a process of a step with nodes. `outputs` is then its node's folder.
  std::optional<NodeProcess> process = {};
};

/// The reports of a running attempt, and the source that stops it.
struct AttemptIo {
  LogSink& log;
  core::CancelSource& cancel;  ///< Stopped by the user, fail_fast or the timeout.
  /// Called once the step's command is known to be running, by orchestrators with
  /// Capabilities::reports_begin. The argument is how long the command has been running; later
  /// calls have no effect.
  std::function<void(std::chrono::milliseconds)> on_began = {};
  /// Makes the content of another folder on the same file system that of `checkpoint`, all at once.
  std::function<void(const std::filesystem::path&)> replace_checkpoint = {};
};

struct Attempt : AttemptSpec {
  AttemptIo io;
};

/// The end of a process of an attempt with nodes.
struct NodeProcessEnd {
  unsigned rank = 0;
  unsigned node = 0;             ///< Number among the step's nodes.
  std::string machine;           ///< See AttemptResult::node.
  std::vector<unsigned> gpus;    ///< Indices of the GPUs that the process uses.
  std::optional<int> exit_code;  ///< 128 plus the signal's number if a signal ended it.
  core::Usage usage;
  std::optional<std::chrono::milliseconds> running;  ///< From the start of its node's command.
  bool has_failed_first = false;                     ///< This failure is that of the attempt.
};

struct AttemptResult {
  std::optional<Failure> failure;  ///< Unset if the attempt ended with exit code 0.
  std::optional<int> exit_code;
  std::string image;  ///< The image id or interpreter that the attempt ran in.
  core::Usage usage = {};
  std::string node = {};  ///< Name of the machine that the attempt ran on; empty: not known.
  /// When the step's command started and ended; unset if not known.
  std::optional<std::chrono::steady_clock::time_point> began = {}, ended = {};
  /// Parts of the time before `began` and after `ended` in which files were copied to the step's
  /// machine, and from there.
  std::chrono::nanoseconds moved_in{}, moved_out{};
  /// For orchestrators whose attempts outlive drivers: call it once the attempt's outputs are
  /// stored. Until then, a driver that resumes the run finds the attempt with its result. The call
  /// begins to remove everything of the attempt; settle() waits for the removal.
  std::function<void()> cleanup;
  /// For orchestrators that keep the checkpoint elsewhere: call it after the step's success is
  /// stored.
  std::function<void()> remove_checkpoint = {};
  /// The GPUs that the attempt saw, where the orchestrator assigned them and not the engine.
  std::vector<event::Gpu> gpus;
  /// Outputs of a successful attempt that are not in AttemptSpec::outputs, but in a remote store:
  /// by the output's name, its digest in hex and the place.
  std::map<std::string, std::pair<std::string, model::Elsewhere>> elsewhere = {};
  /// Number of the signal that ended it, where `exit_code` does not tell; 0: none.
  int signal = 0;
  /// The ends of an attempt with nodes, by rank.
  std::vector<NodeProcessEnd> processes = {};
  /// The failure is of kind infrastructure, because a queue preempted the attempt in favour of
  /// another job. A retry waits in the queue again.
  bool was_preempted = false;
};

/// Used only from the loop's thread.
class AttemptRunner {
 public:
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

  /// Returns how much the processes of an attempt in progress have computed, read and written;
  /// nothing if this machine cannot see that.
  virtual async::Task<std::optional<core::Activity>> activity_of(const Attempt& attempt) {
    (void)attempt;
    co_return std::nullopt;
  }

  /// Runs the words on the user's terminal beside the process: in its container, with its variables
  /// and GPUs, in its folder. Returns their exit code; nothing if the process does not run, or
  /// cannot be joined here.
  virtual async::Task<std::optional<int>> join(RunningProcess process, ShellRequest shell) {
    (void)process, (void)shell;
    co_return std::nullopt;
  }
  /// Runs the words beside the process as join() does, but without a terminal. Returns what they
  /// print, of long output only the beginning; nothing if they cannot be run there. Nothing stops
  /// the words, so they must end by themselves.
  virtual async::Task<std::optional<std::string>> ask(RunningProcess process,
                                                      std::vector<std::string> words) {
    (void)process, (void)words;
    co_return std::nullopt;
  }

  /// Prepares what the processes of an attempt with nodes need to reach one another, before the
  /// first of them is run. The default: processes of this machine, on free ports.
  virtual async::Task<NodeAddresses> connect_nodes(const Attempt& attempt, unsigned nodes,
                                                   unsigned ranks);
  /// Removes what connect_nodes() has prepared; called after the last process has ended.
  virtual async::Task<> disconnect_nodes(const Attempt& attempt) {
    (void)attempt;
    co_return;
  }

  /// Waits for removals that earlier run() calls have begun; must be called before this object is
  /// destroyed.
  virtual async::Task<> settle() { co_return; }

  /// Removes an attempt that a dead driver has begun and this driver does not join, with all its
  /// processes. For orchestrators whose attempts outlive drivers.
  virtual async::Task<> discard_attempt(const std::string& run_id, const std::string& step,
                                        unsigned number) {
    (void)run_id, (void)step, (void)number;
    co_return;
  }

  /// Removes what earlier runs with dead drivers have left.
  /// @param is_alive returns true for a run of this state folder that still has a driver, and false
  /// for runs of other state folders. Objects of those are recognized by their owner (owner_of())
  /// and left alone.
  virtual async::Task<> remove_orphans(const std::function<bool(const std::string&)>& is_alive) = 0;

  virtual ~AttemptRunner() = default;
};

}  // namespace pipeline::orchestrators
