#include "orchestrators/slurm/job_states.hpp"

#include <fstream>
#include <map>
#include <string>

#include <gtest/gtest.h>

namespace pipeline::orchestrators::slurm {
namespace {

using namespace std::chrono_literals;

JobView in_state(std::string state, std::chrono::seconds since = 0s) {
  JobView view;
  view.has_begun = true;
  view.state = std::move(state);
  view.since_change = since;
  return view;
}

TEST(JobStates, each_state_of_squeue_has_a_row) {
  // The list JOB STATE CODES of squeue(1).
  for (const auto* name :
       {"BOOT_FAIL",     "CANCELLED",    "COMPLETED",     "CONFIGURING", "COMPLETING", "DEADLINE",
        "FAILED",        "NODE_FAIL",    "OUT_OF_MEMORY", "PENDING",     "PREEMPTED",  "RUNNING",
        "RESV_DEL_HOLD", "REQUEUE_FED",  "REQUEUE_HOLD",  "REQUEUED",    "RESIZING",   "REVOKED",
        "SIGNALING",     "SPECIAL_EXIT", "STAGE_OUT",     "STOPPED",     "SUSPENDED",  "TIMEOUT"})
    EXPECT_NE(find_state(name), nullptr) << name;
  EXPECT_EQ(find_state("NEW_IN_SLURM_30"), nullptr);
}

/// Returns the rows of the table in docs/slurm.md: what it says, by the state's name.
std::map<std::string, std::string> documented_states() {
  std::ifstream file(PIPELINE_SOURCE_DIR "/docs/slurm.md");
  std::map<std::string, std::string> rows;
  bool is_in_table = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("| state of Slurm |")) is_in_table = true;
    if (line.empty()) is_in_table = false;
    const auto end = line.find(" | ");
    if (!is_in_table || !line.starts_with("| `") || end == line.npos) continue;
    for (auto begin = line.find('`'); begin < end; begin = line.find('`', begin + 1)) {
      const auto name = line.substr(begin + 1, line.find('`', begin + 1) - begin - 1);
      EXPECT_TRUE(rows.try_emplace(name, line.substr(end + 3)).second) << name << " twice";
      begin = line.find('`', begin + 1);
    }
  }
  return rows;
}

TEST(JobStates, the_page_and_the_code_have_the_same_rows) {
  const std::map<FailureKind, std::string> words{
      {FailureKind::infrastructure, "infrastructure failure"},
      {FailureKind::environment, "environment failure"},
      {FailureKind::timed_out, "timed out"},
      {FailureKind::out_of_memory, "out of memory"}};
  const auto rows = documented_states();
  EXPECT_EQ(rows.size(), job_states().size());
  for (const auto& [name, row] : rows) EXPECT_NE(find_state(name), nullptr) << name;
  for (const auto& state : job_states()) {
    const auto row = rows.find(std::string(state.name));
    ASSERT_NE(row, rows.end()) << state.name;
    const auto& text = row->second;
    EXPECT_EQ(text.starts_with("it waits"), state.phase == JobPhase::waiting) << state.name;
    EXPECT_EQ(text.starts_with("it runs"), state.phase == JobPhase::running) << state.name;
    if (state.phase == JobPhase::ended) {
      EXPECT_NE(text.find(words.at(state.kind)), text.npos) << state.name;
    }
  }
}

TEST(JobStates, an_end_that_its_agent_wrote_needs_no_state) {
  for (const auto& state : job_states()) {
    auto view = in_state(std::string(state.name));
    view.has_ended = true;
    EXPECT_EQ(next_action(view), JobAction::end) << state.name;
  }
}

TEST(JobStates, a_job_that_is_not_over_is_waited_for) {
  for (const auto& state : job_states()) {
    if (state.phase == JobPhase::ended) continue;
    EXPECT_EQ(next_action(in_state(std::string(state.name), 1000h)), JobAction::wait) << state.name;
  }
  EXPECT_EQ(next_action(in_state("NEW_IN_SLURM_30", 1000h)), JobAction::wait);
  EXPECT_EQ(next_action(in_state("", 1000h)), JobAction::wait);
}

TEST(JobStates, the_end_of_a_job_that_is_over_may_be_on_its_way) {
  for (const auto& state : job_states()) {
    if (state.phase != JobPhase::ended) continue;
    const std::string name(state.name);
    EXPECT_EQ(next_action(in_state(name, 5s)), JobAction::wait) << name;
    EXPECT_EQ(next_action(in_state(name, 61s)), JobAction::give_up) << name;
    EXPECT_EQ(next_action(in_state(name, 15s)),
              state.explains ? JobAction::give_up : JobAction::wait)
        << name;
  }
  auto gone = in_state("RUNNING", 15s);
  gone.is_gone = true;
  EXPECT_EQ(next_action(gone), JobAction::wait);
  gone.since_change = 61s;
  EXPECT_EQ(next_action(gone), JobAction::give_up);
}

TEST(JobStates, a_stopped_job_is_not_waited_for_once_it_is_over) {
  auto view = in_state("CANCELLED");
  view.wanted = core::StopLevel::graceful;
  EXPECT_EQ(next_action(view), JobAction::wait);
  view.since_change = 6s;
  EXPECT_EQ(next_action(view), JobAction::end);
  view.since_change = 0s;
  view.has_begun = false;
  EXPECT_EQ(next_action(view), JobAction::end);
  view.has_begun = true;
  view.wanted = core::StopLevel::immediate;
  EXPECT_EQ(next_action(view), JobAction::end);
}

TEST(JobStates, a_silent_controller_is_not_waited_for_forever) {
  auto view = in_state("PENDING");
  view.has_begun = false;
  view.without_answer = 9min;
  EXPECT_EQ(next_action(view), JobAction::wait);
  view.without_answer = 11min;
  EXPECT_EQ(next_action(view), JobAction::give_up);
  view.has_begun = true;  // Its end comes without the controller.
  EXPECT_EQ(next_action(view), JobAction::wait);
  view.without_answer = 25h;
  EXPECT_EQ(next_action(view), JobAction::give_up);
  EXPECT_EQ(failure_of_job(view, "7").kind, FailureKind::infrastructure);
}

TEST(JobStates, a_cancellation_by_a_node_that_cannot_start_a_job_is_not_by_a_user) {
  auto view = in_state("CANCELLED");
  view.node = "node7";
  view.has_begun = false;
  const auto failure = failure_of_job(view, "7");
  EXPECT_EQ(failure.kind, FailureKind::infrastructure);
  EXPECT_EQ(failure.message, "was cancelled in Slurm before its script began on node7");
  view.has_begun = true;
  EXPECT_EQ(failure_of_job(view, "7").kind, FailureKind::environment);
}

TEST(JobStates, a_cancellation_after_a_second_start_by_the_controller_is_not_by_a_user) {
  auto view = in_state("CANCELLED");
  view.node = "node7";
  view.node_reason = "Duplicate jobid\n";
  const auto failure = failure_of_job(view, "7");
  EXPECT_EQ(failure.kind, FailureKind::infrastructure);
  EXPECT_EQ(failure.message,
            "was cancelled by Slurm, whose restarted controller had started it twice");
  view.node_reason = "SlurmdSpoolDir is full\n";
  EXPECT_EQ(failure_of_job(view, "7").kind, FailureKind::environment);
}

TEST(JobStates, a_job_that_waits_again_was_requeued) {
  auto view = in_state("PENDING");
  view.has_ended = true;
  const auto failure = failure_of_job(view, "7");
  EXPECT_EQ(failure.kind, FailureKind::infrastructure);
  EXPECT_EQ(failure.message,
            "was stopped: Slurm has put its job back into the queue (scontrol requeue)");
}

TEST(JobStates, each_end_has_its_kind_of_failure) {
  const auto kind = [](const char* state) { return failure_of_job(in_state(state), "4711").kind; };
  EXPECT_EQ(kind("TIMEOUT"), FailureKind::timed_out);
  EXPECT_EQ(kind("DEADLINE"), FailureKind::timed_out);
  EXPECT_EQ(kind("OUT_OF_MEMORY"), FailureKind::out_of_memory);
  EXPECT_EQ(kind("CANCELLED"), FailureKind::environment);
  for (const auto* state : {"NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "REVOKED", "COMPLETED", "FAILED",
                            "LAUNCH_FAILED", "RECONFIG_FAIL"})
    EXPECT_EQ(kind(state), FailureKind::infrastructure) << state;
  for (const auto& state : job_states())
    EXPECT_EQ(was_preempted(in_state(std::string(state.name))), state.name == "PREEMPTED");
  const auto failure = failure_of_job(in_state("NODE_FAIL"), "4711");
  EXPECT_EQ(failure.message, "was lost with its node");
  ASSERT_EQ(failure.details.size(), 1u);
  EXPECT_EQ(failure.details[0], "Slurm's job 4711: NODE_FAIL");
  auto gone = in_state("RUNNING");
  gone.is_gone = true;
  EXPECT_EQ(failure_of_job(gone, "4711").message,
            "is lost: Slurm does not know its job 4711 any more, and its node did not write the "
            "step's end");
}

}  // namespace
}  // namespace pipeline::orchestrators::slurm
