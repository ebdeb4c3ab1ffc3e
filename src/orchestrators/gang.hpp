/// @file
/// Runs an attempt of a step with nodes: many sessions of its orchestrator, each with a process, as
/// one attempt.
#pragma once

#include <cstddef>
#include <deque>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "async/task.hpp"
#include "core/lines.hpp"
#include "orchestrators/attempts.hpp"

namespace pipeline::orchestrators {

/// Passes on whole lines of a process, with rank_prefix() before each.
class RankLog final : public LogSink {
 public:
  RankLog(LogSink& log, unsigned rank);
  void write(Stream stream, std::string_view bytes) override;
  /// Passes on the last line if it has no end.
  void finish();

 private:
  void pass(Stream stream, std::string_view line);

  LogSink& log_;
  const std::string prefix_;
  core::Lines lines_[2];
};

/// All processes of an attempt start together. The first failure ends the others: SIGTERM, the
/// grace, SIGKILL, as for a process that is cancelled.
class Gang {
 public:
  /// @param attempt of a step with nodes; it and `runner` outlive the gang
  Gang(AttemptRunner& runner, const Attempt& attempt);

  /// Runs all processes to their ends. A failure is that of the process that failed first.
  async::Task<AttemptResult> run();
  /// Returns AttemptRunner::waits_of() of all processes, each line behind its rank_prefix().
  async::Task<std::vector<std::string>> waits() const;
  /// The rank of the process that failed first.
  std::optional<unsigned> failed_rank() const { return failed_rank_; }

 private:
  struct Member {
    Member(const Attempt& attempt, AttemptSpec spec, core::CancelSource& stop);
    RankLog log;
    Attempt attempt;
    bool has_begun = false, has_ended = false;
    AttemptResult result = {};
    std::exception_ptr error = {};
  };

  void make_members();
  std::vector<AssignedGpu> gpus_of(const NodeProcess& process) const;
  AttemptSpec spec_of(const NodeProcess& process) const;
  std::filesystem::path outputs_of(unsigned node) const;
  async::Task<> run_members();
  async::Task<> run_member(Member& member);
  void begin(Member& member, std::chrono::milliseconds ago);
  void end(Member& member);
  const Member* first_failed() const;
  AttemptResult result();
  void take_failure(const Member& member, AttemptResult& result);
  std::optional<Failure> gather_outputs() const;
  std::optional<Failure> gather(const AttemptOutput& output) const;

  AttemptRunner& runner_;
  const Attempt& attempt_;
  const NodesSpec& spec_;
  const unsigned processes_;  ///< Of each node.
  NodeAddresses addresses_;
  core::CancelSource stop_;
  std::deque<Member> members_;  ///< By rank.
  std::size_t begun_ = 0;
  bool is_over_ = false;  ///< A process has failed, or rank 0 has succeeded and is enough.
  std::optional<unsigned> failed_rank_;
};

}  // namespace pipeline::orchestrators
