/// @file
/// Runs an attempt of a step with nodes: many sessions of its orchestrator, each with a process, as
/// one attempt.
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

namespace pipeline::orchestrators {

/// Passes on whole lines of a process, with rank_prefix() before each. Those that an agent passes
/// on have it already.
class RankLog final : public LogSink {
 public:
  /// @param on_end set if the process is an agent, for the ends of its processes
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

/// The activity of each rank, or with agents of each node, by its first rank.
using ActivityByRank = std::vector<std::pair<unsigned, core::Activity>>;

/// All processes of an attempt start together. The first failure ends the others: SIGTERM, the
/// grace, SIGKILL, as for a process that is cancelled.
class Gang {
 public:
  /// @param attempt of a step with nodes; it and `runner` outlive the gang
  /// @param max_pause after everything was given back, see pause_of()
  Gang(AttemptRunner& runner, const Attempt& attempt,
       std::chrono::milliseconds max_pause = max_gang_pause);

  /// Runs all processes to their ends. A failure is that of the process that failed first.
  /// Begins anew after a pause if everything was given back (NodeAddresses::gives_back), and at
  /// once as often as NodesSpec::restarts says.
  async::Task<AttemptResult> run();
  /// Returns AttemptRunner::waits_of() of all processes, each line behind its rank_prefix().
  async::Task<std::vector<std::string>> waits() const;
  /// Returns what those that run have done; empty if that is not known of one of them.
  async::Task<ActivityByRank> activity() const;
  /// Returns what names the rank for AttemptRunner::ask().
  RunningProcess process_of(unsigned rank) const;
  /// The rank of the process that failed first.
  std::optional<unsigned> failed_rank() const { return failed_rank_; }

 private:
  /// A process, or a whole node with NodeAddresses::has_agents.
  struct Member {
    Member(const Attempt& attempt, AttemptSpec spec, std::function<void(const RankEnd&)> on_end);
    RankLog log;
    core::CancelSource stop;
    Attempt attempt;
    std::optional<RankEnd> failed = {};     ///< The first of its processes, as its agent tells.
    std::map<unsigned, RankEnd> ends = {};  ///< Of its processes by rank, as its agent tells.
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
  std::vector<ProcessEnd> process_ends() const;
  std::optional<Failure> gather_outputs() const;
  std::optional<Failure> gather(const AttemptOutput& output) const;

  AttemptRunner& runner_;
  const Attempt& attempt_;
  const NodesSpec& spec_;
  const std::chrono::milliseconds max_pause_;
  unsigned processes_;  ///< Of each node.
  NodeAddresses addresses_;
  core::CancelSource over_;     ///< Stopped once the others have to end.
  core::CancelSource ended_;    ///< Stopped once all have ended.
  std::deque<Member> members_;  ///< By rank.
  std::size_t begun_ = 0;
  unsigned restarts_ = 0;
  std::optional<unsigned> failed_rank_;
};

}  // namespace pipeline::orchestrators
