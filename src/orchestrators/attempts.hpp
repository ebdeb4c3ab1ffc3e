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

namespace pipeline::orchestrators {

/// An artifact in a gathered input.
struct AttemptPiece {
  std::string file;  ///< Its name in the input's folder.
  std::string path;  ///< A text, because a path keeps each of its parts, too: some 500 bytes.
  std::string digest;
  std::optional<model::Elsewhere> elsewhere = {};  ///< See AttemptInput.
};
/// A file at an address.
struct RemoteFile {
  std::string path;  ///< In the folder; empty for content that is a file itself.
  std::string url;   ///< Gives the content without a login, for some days; may be a secret.
};
/// Content at an address, for executors with Capabilities::fetches_addresses.
struct RemoteContent {
  std::string shown;       ///< The address for messages.
  std::string server;      ///< The responding part of the address, for messages.
  std::uint64_t size = 0;  ///< In bytes; 0: not known.
  bool is_folder = false;
  bool is_public = false;  ///< The server is on the Internet, not a bucket.
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
  /// Set for an artifact that only the remote store has, for executors with
  /// Capabilities::takes_elsewhere: there is nothing at `path`.
  std::optional<model::Elsewhere> elsewhere = {};
};
/// An artifact among an attempt's inputs is damaged or missing where the executor takes it from,
/// and this machine has it not.
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
  bool from_all_nodes = false;
  /// The executor may leave it elsewhere, see AttemptResult::elsewhere.
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
};

/// Words that are executed on the user's terminal in place of a step's command.
struct ShellRequest {
  std::vector<std::string> words;  ///< At least one.
  bool has_terminal = false;       ///< Standard input and output of this process are a terminal.
  std::string id = {};             ///< Unique among all shells: a valid run identifier.
  std::string image = {};  ///< Image of the container to have: identifier or reference; empty: the
                           ///< step's.
  unsigned node = 0;       ///< Number of the node whose shell it is, of a step with nodes.
};

/// A process of an attempt in progress, which another driver may have begun.
struct RunningProcess {
  std::string run_id, step;
  unsigned number = 1;                ///< Of the attempt.
  std::optional<unsigned> rank = {};  ///< Of a step with nodes.
  unsigned first_rank_of_node = 0;    ///< Of its node.
  unsigned node = 0;                  ///< Number of its node.
};

/// Where the processes of an attempt with nodes reach one another.
struct NodeAddresses {
  std::vector<std::string> nodes;  ///< Names or IP addresses, by the node's number.
  /// The first of as many consecutive free ports as the attempt has processes.
  unsigned port = 0;
  std::string network = {};  ///< Of the orchestrator's own, for its sessions; may be empty.
  /// One session runs a whole node: its agent starts the node's processes (agent/ranks.hpp).
  bool has_agents = false;
  /// All nodes have one description: it has `node_mark` (nodes.hpp) in place of a node's number.
  bool are_alike = false;
  /// A word that only the agents have, where other users of the machine see command lines and reach
  /// the ports of agents; may be empty.
  std::string secret = {};
  /// Free port for NCCL's state (NCCL_RAS_ADDR), where several attempts share a machine's; 0: its
  /// own.
  unsigned nccl_port = 0;
  std::size_t gpus = 0;   ///< Of each node, if not the engine has reserved them.
  unsigned restarts = 0;  ///< How often the processes have begun again in this attempt, without an
                          ///< agent that restarts them.
  unsigned tries = 0;     ///< How often the attempt has given everything back before.
  /// Set by a session that cannot begin, because others have what its node needs: all of the
  /// attempt's is to be given back, and tried again after a pause.
  mutable bool gives_back = false;
};

/// One of the processes of an attempt with nodes, or with NodeAddresses::has_agents the first of
/// its node: an attempt for the orchestrator, beside others with the same run, step and number.
struct NodeProcess {
  unsigned rank = 0, ranks = 1;  ///< Number among all processes, and how many they are.
  unsigned node = 0, nodes = 1;
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
  StringMap environment;  ///< The step's declared environment, with values of the user's
                          ///< environment filled in.
  StringMap secrets;      ///< Must never be stored or shown.
  /// Nodes that the step should run on only if there are no others.
  std::vector<std::string> avoided_nodes = {};
  std::vector<AssignedGpu>
      gpus;  ///< Reserved for this attempt alone, from before its start until after its end.
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
  /// Capabilities::reports_begin. It has been running for that time; later calls have no effect.
  std::function<void(std::chrono::milliseconds)> on_began = {};
  /// Makes the content of another folder on the same file system that of `checkpoint`, all at once.
  std::function<void(const std::filesystem::path&)> replace_checkpoint = {};
};

struct Attempt : AttemptSpec {
  AttemptIo io;
};

/// The end of a process of an attempt with nodes.
struct ProcessEnd {
  unsigned rank = 0;
  unsigned node = 0;             ///< Number among the step's nodes.
  std::string machine;           ///< As AttemptResult::node.
  std::vector<unsigned> gpus;    ///< Indices of those that it takes.
  std::optional<int> exit_code;  ///< 128 plus the number of the signal that ended it.
  core::Usage usage;
  std::optional<std::chrono::milliseconds> running;  ///< Since the command of its node started.
  bool has_failed_first = false;                     ///< Its failure is the attempt's.
};

struct AttemptResult {
  std::optional<Failure> failure;  ///< Unset if the attempt ended with exit code 0.
  std::optional<int> exit_code;
  std::string image;  ///< The image id or interpreter that the attempt ran in.
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
  /// For orchestrators that keep the checkpoint elsewhere: call it after the step's success is
  /// stored.
  std::function<void()> remove_checkpoint = {};
  /// GPUs that it was seen to have, where they are assigned elsewhere than by a reservation.
  std::vector<event::Gpu> gpus;
  /// Outputs of a success that are not in AttemptSpec::outputs, but elsewhere, by their digests.
  std::map<std::string, std::pair<std::string, model::Elsewhere>> elsewhere = {};
  /// Number of the signal that ended it, where `exit_code` does not tell; 0: none.
  int signal = 0;
  /// The ends of an attempt with nodes, by rank.
  std::vector<ProcessEnd> processes = {};
  /// An infrastructure failure is that a queue gave its place to another: it waits there again.
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

  /// Returns what the processes of an attempt in progress have done; nothing if this machine cannot
  /// see that.
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
  /// The same without a terminal. Returns what the words print, of which the beginning is enough;
  /// nothing if they cannot be run there. They end by themselves.
  virtual async::Task<std::optional<std::string>> ask(RunningProcess process,
                                                      std::vector<std::string> words) {
    (void)process, (void)words;
    co_return std::nullopt;
  }

  /// Prepares what the processes of an attempt with nodes need to reach one another, before the
  /// first of them is run. The default: processes of this machine, on free ports.
  virtual async::Task<NodeAddresses> connect_nodes(const Attempt& attempt, unsigned nodes,
                                                   unsigned ranks);
  /// Removes that, once the last of them has ended.
  virtual async::Task<> disconnect_nodes(const Attempt& attempt) {
    (void)attempt;
    co_return;
  }

  /// Waits for removals that earlier run() calls have begun; call it before the destruction.
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

  virtual ~AttemptRunner() = default;
};

}  // namespace pipeline::orchestrators
