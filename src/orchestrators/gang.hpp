/// @file
/// Runs an attempt of a step with nodes. Its processes are a gang: they start, fail and end
/// together. Each process, or each node that has an agent, is a session, that is, a run() of the
/// orchestrator; the engine sees one attempt.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "async/task.hpp"
#include "core/lines.hpp"
#include "orchestrators/attempts.hpp"
#include "orchestrators/nodes.hpp"
#include "orchestrators/rank_lines.hpp"

namespace pipeline::orchestrators {

/// Passes on whole lines of a session, with rank_prefix() before each. Lines of an agent
/// (agent/ranks.hpp), which starts the processes of a node, have the prefix already.
class RankLog final : public LogSink {
 public:
  /// @param on_end called with each end of a process that an agent reports; empty if the process is
  /// not an agent
  RankLog(LogSink& log, unsigned rank, std::function<void(const RankEnd&)> on_end = {});
  void write(Stream stream, std::string_view bytes) override;
  /// Passes on the last line if it has no end.
  void finish();

 private:
  void pass(Stream stream, std::string_view line);

  LogSink& log_;
  const std::string prefix_;
  const std::function<void(const RankEnd&)> on_end_;
  core::Lines lines_[2];
};

/// The activity of each rank; with agents that of each node, under the node's first rank.
using ActivityByRank = std::vector<std::pair<unsigned, core::Activity>>;

/// Starts all processes of an attempt together. After the first failure, the other processes are
/// stopped like those of a cancelled attempt: SIGTERM, a grace period, SIGKILL.
class Gang {
 public:
  /// @param attempt of a step with nodes; `attempt` and `runner` outlive the gang
  /// @param max_pause limit of the pause after everything was released, see pause_of()
  Gang(AttemptRunner& runner, const Attempt& attempt,
       std::chrono::milliseconds max_pause = max_gang_pause);

  /// Runs all processes to their ends. Returns the failure of the process that failed first.
  /// Starts over after a pause if everything was released (NodeAddresses::gives_back). After
  /// a failure, starts over at once, up to NodesSpec::restarts times.
  async::Task<AttemptResult> run();
  /// Returns AttemptRunner::waits_of() of all processes, each line after its rank_prefix().
  async::Task<std::vector<std::string>> waits() const;
  /// Returns the activity of the running processes; empty if that of one of them is not known.
  async::Task<ActivityByRank> activity() const;
  /// Returns the description of the rank's process for AttemptRunner::ask().
  RunningProcess process_of(unsigned rank) const;
  /// The rank of the process that failed first.
  std::optional<unsigned> failed_rank() const { return failed_rank_; }

 private:
  /// A session: a process, or with NodeAddresses::has_agents a whole node.
  struct Member {
    Member(const Attempt& attempt, AttemptSpec spec, std::function<void(const RankEnd&)> on_end);
    RankLog log;
    core::CancelSource stop;
    Attempt attempt;
    std::optional<RankEnd> failed = {};     ///< The first failure that its agent reported.
    std::map<unsigned, RankEnd> ends = {};  ///< All ends that its agent reported, by rank.
    bool has_begun = false, has_ended = false;
    AttemptResult result = {};
    std::exception_ptr error = {};
  };

  async::Task<AttemptResult> try_once();
  async::Task<> give_back(AttemptResult& result);
  bool begins_again(const AttemptResult& result);
  void reset();
  void make_members();
  std::vector<AssignedGpu> gpus_of(const NodeProcess& process) const;
  AttemptSpec spec_of(const NodeProcess& process) const;
  std::filesystem::path outputs_of(unsigned node) const;
  async::Task<> run_members();
  async::Task<> run_member(Member& member);
  void begin(Member& member, std::chrono::milliseconds ago);
  void end(Member& member);
  void take_end(Member& member, const RankEnd& end);
  void fail(unsigned rank);
  async::Task<> stop_others();
  void stop(core::StopLevel level);
  const Member* first_failed() const;
  AttemptResult result();
  void take_failure(const Member& member, AttemptResult& result);
  std::vector<NodeProcessEnd> process_ends() const;
  std::optional<Failure> gather_outputs() const;
  std::optional<Failure> gather(const AttemptOutput& output) const;

  AttemptRunner& runner_;
  const Attempt& attempt_;
  const NodesSpec& spec_;
  const std::chrono::milliseconds max_pause_;
  unsigned processes_;  ///< Number of processes of each node.
  NodeAddresses addresses_;
  core::CancelSource over_;     ///< Stopped once the processes that still run have to end.
  core::CancelSource ended_;    ///< Stopped once all members have ended.
  std::deque<Member> members_;  ///< In the order of their ranks.
  std::size_t begun_ = 0;       ///< Number of members with `has_begun`.
  unsigned restarts_ = 0;
  std::optional<unsigned> failed_rank_;
};

}  // namespace pipeline::orchestrators
