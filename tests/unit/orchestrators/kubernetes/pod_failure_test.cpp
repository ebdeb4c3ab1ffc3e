#include "orchestrators/kubernetes/pod_failure.hpp"
#include "orchestrators/kubernetes/pod_staging.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/attempt_builder.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using nlohmann::json;
using test::AttemptBuilder;
using testing::HasSubstr;

/// A pod `p` on node `n1`, whose status is this.
json pod_with(const json& status) {
  return {{"metadata", {{"name", "p"}}},
          {"spec",
           {{"nodeName", "n1"},
            {"containers",
             {{{"name", "step"},
               {"resources",
                {{"requests",
                  {{"cpu", "1500m"}, {"memory", "1073741824"}, {"nvidia.com/gpu", "8"}}}}}}}}}},
          {"status", status}};
}
json container(const json& state) {
  return {{"phase", "Pending"},
          {"containerStatuses", {{{"name", "step"}, {"image", "x:1"}, {"state", state}}}}};
}
json ended(int code, const std::string& reason, const std::string& message = {}) {
  auto status =
      container({{"terminated", {{"exitCode", code}, {"reason", reason}, {"message", message}}}});
  status["phase"] = code == 0 ? "Succeeded" : "Failed";
  return status;
}

struct PodEndCase {
  const char* name;
  json status;
  FailureKind kind;
  const char* message;  ///< A part of it.
};
class PodEnds : public testing::TestWithParam<PodEndCase> {};

TEST_P(PodEnds, have_their_kind_of_failure_and_message) {
  AttemptBuilder step(test::program({"train"}));
  const auto failure = failure_of_pod(pod_with(GetParam().status), step.attempt(), "image", {});
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->kind, GetParam().kind) << failure->message;
  EXPECT_THAT(failure->message, HasSubstr(GetParam().message));
}

json with(json status, const json& more) {
  status.update(more);
  return status;
}

const PodEndCase pod_end_cases[] = {
    {"exit_code", ended(3, "Error"), FailureKind::exit_code, "exit code 3"},
    {"signal", ended(139, "Error"), FailureKind::signal, "SIGSEGV"},
    {"kill_is_no_memory_matter_by_itself", ended(137, "Error"), FailureKind::signal, "SIGKILL"},
    {"memory", ended(137, "OOMKilled"), FailureKind::out_of_memory,
     "the pod p on node n1 ran out of memory"},
    {"no_program", ended(127, "Error", R"({"not_executed": 2})"), FailureKind::not_started,
     "there is no program 'train' in the image image"},
    {"not_executable", ended(126, "Error", R"({"not_executed": 13})"), FailureKind::not_started,
     "'train' is not executable"},
    {"evicted",
     with(ended(137, "Error"),
          {{"reason", "Evicted"}, {"message", "The node was low on resource: memory."}}),
     FailureKind::infrastructure,
     "the pod p on node n1 was evicted by its node: The node was low on resource: memory."},
    {"evicted_on_a_newer_server",
     with(ended(137, "Error"), {{"reason", "Evicted"},
                                {"message", "The node was low on resource: memory."},
                                {"conditions",
                                 {{{"type", "DisruptionTarget"},
                                   {"status", "True"},
                                   {"reason", "TerminationByKubelet"}}}}}),
     FailureKind::infrastructure,
     "the pod p on node n1 was evicted by its node: The node was low on resource: memory."},
    {"node_removed",
     with(ended(137, "Error"),
          {{"conditions",
            {{{"type", "DisruptionTarget"}, {"status", "True"}, {"reason", "DeletionByPodGC"}}}}}),
     FailureKind::infrastructure,
     "was lost with its node, which the cluster does not have any more"},
    {"preempted",
     with(ended(137, "Error"), {{"conditions",
                                 {{{"type", "DisruptionTarget"},
                                   {"status", "True"},
                                   {"reason", "PreemptionByScheduler"}}}}}),
     FailureKind::infrastructure, "preempted by a pod of higher priority"},
    {"taint",
     with(ended(143, "Error"), {{"conditions",
                                 {{{"type", "DisruptionTarget"},
                                   {"status", "True"},
                                   {"reason", "DeletionByTaintManager"}}}}}),
     FailureKind::infrastructure, "taint that it does not tolerate"},
    {"node_lost",
     {{"phase", "Unknown"}, {"reason", "NodeLost"}},
     FailureKind::infrastructure,
     "was lost with its node"},
    {"node_shutdown",
     {{"phase", "Failed"}, {"reason", "Terminated"}},
     FailureKind::infrastructure,
     "its node's shutdown"},
    {"no_room_after_all",
     {{"phase", "Failed"}, {"reason", "OutOfcpu"}},
     FailureKind::infrastructure,
     "not taken by its node (OutOfcpu)"},
    {"deadline",
     {{"phase", "Failed"}, {"reason", "DeadlineExceeded"}},
     FailureKind::timed_out,
     "longer than its deadline"},
    {"runtime", ended(128, "StartError", "runc: no"), FailureKind::not_started,
     "could not start: runc: no"},
    {"nothing_known",
     {{"phase", "Failed"}},
     FailureKind::infrastructure,
     "nothing is known of its container"},
};
INSTANTIATE_TEST_SUITE_P(Each, PodEnds, testing::ValuesIn(pod_end_cases),
                         [](const auto& one) { return one.param.name; });

TEST(PodVerdicts, success_is_not_a_failure) {
  AttemptBuilder step(test::program({"true"}));
  EXPECT_FALSE(failure_of_pod(pod_with(ended(0, "Completed")), step.attempt(), "image", {}));
  EXPECT_EQ(exit_code_of(pod_with(ended(0, "Completed"))), 0);
  EXPECT_EQ(exit_code_of(pod_with({})), std::nullopt);
}

TEST(PodVerdicts, deletion_by_others_is_reported_unless_the_step_had_ended) {
  AttemptBuilder step(test::program({"true"}));
  auto gone = pod_with(ended(143, "Error"));
  gone["metadata"]["deletionTimestamp"] = "2026-11-21T08:15:00Z";
  EXPECT_THAT(failure_of_pod(gone, step.attempt(), "image", {})->message,
              HasSubstr("was deleted by another user or program"));
  gone["status"] = ended(0, "Completed");
  EXPECT_FALSE(failure_of_pod(gone, step.attempt(), "image", {}));
}

TEST(PodVerdicts, deadline_differs_from_a_deletion_by_others) {
  const json job{{"spec", {{"activeDeadlineSeconds", 60}}},
                 {"status", {{"startTime", "2026-11-21T08:15:00Z"}}}};
  auto gone = pod_with(ended(143, "Error"));
  gone["metadata"]["deletionGracePeriodSeconds"] = 10;
  gone["metadata"]["deletionTimestamp"] = "2026-11-21T08:16:09Z";  // asked for ten seconds before
  EXPECT_FALSE(past_deadline(job, gone));
  gone["metadata"]["deletionTimestamp"] = "2026-11-21T08:16:10Z";
  const auto failure = past_deadline(job, gone);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->kind, FailureKind::timed_out);
  EXPECT_EQ(failure->message,
            "the pod p on node n1 was ended by the cluster: its Job has a deadline of 1m00s");
  EXPECT_FALSE(past_deadline({{"spec", json::object()}}, gone));
  EXPECT_FALSE(past_deadline(job, pod_with(ended(143, "Error"))));
}

TEST(PodVerdicts, waiting_has_its_reason_and_its_time_limit) {
  auto state = pod_state_of(
      pod_with({{"phase", "Pending"},
                {"conditions",
                 {{{"type", "PodScheduled"},
                   {"status", "False"},
                   {"reason", "Unschedulable"},
                   {"message", "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."}}}}}));
  EXPECT_EQ(state.phase, PodState::Phase::waiting);
  EXPECT_EQ(state.waits_for,
            "no node takes it: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu.");
  ASSERT_TRUE(state.failure);
  EXPECT_THAT(state.failure->hints.front(),
              HasSubstr("the step asks for cpu 1500m, memory 1 GiB, nvidia.com/gpu 8;"));
  EXPECT_EQ(state.limit, std::chrono::minutes(10));

  state = pod_state_of(pod_with(container(
      {{"waiting", {{"reason", "ImagePullBackOff"}, {"message", "Back-off pulling image"}}}})));
  EXPECT_EQ(state.waits_for,
            "the image cannot be fetched (x:1, ImagePullBackOff): Back-off pulling image");
  EXPECT_EQ(state.limit, std::chrono::minutes(3));
  state = pod_state_of(pod_with(container({{"waiting", {{"reason", "ErrImageNeverPull"}}}})));
  ASSERT_TRUE(state.failure);
  EXPECT_EQ(state.limit, std::chrono::seconds(0));
  state = pod_state_of(pod_with(container({{"waiting", {{"reason", "ContainerCreating"}}}})));
  EXPECT_EQ(state.waits_for, "");
  EXPECT_EQ(state.failure->message,
            "the pod p on node n1 has not started within 10m00s (ContainerCreating)");
  state = pod_state_of_job({{"metadata", {{"name", "j"}}}});
  EXPECT_EQ(state.failure->message, "its Job j got no pod within 10m00s");
  state = pod_state_of_job({{"metadata", {{"name", "j"}}}}, std::chrono::seconds(5));
  EXPECT_EQ(state.limit, std::chrono::seconds(5));
  state = pod_state_of_job({{"spec", {{"suspend", true}}}});
  EXPECT_FALSE(state.failure);
  EXPECT_THAT(state.waits_for, HasSubstr("suspended"));
}

TEST(PodVerdicts, a_pod_on_a_lost_node_differs_from_one_that_is_not_ready) {
  auto running = container({{"running", json::object()}});
  auto state = pod_state_of(pod_with(running));
  EXPECT_EQ(state.phase, PodState::Phase::running);
  EXPECT_FALSE(state.node_is_away);
  running["conditions"] = {
      {{"type", "Ready"}, {"status", "False"}, {"reason", "ContainersNotReady"}}};
  EXPECT_FALSE(pod_state_of(pod_with(running)).node_is_away);
  running["conditions"] = {{{"type", "Ready"}, {"status", "False"}}};
  state = pod_state_of(pod_with(running));
  EXPECT_EQ(state.phase, PodState::Phase::running);
  EXPECT_TRUE(state.node_is_away);
  EXPECT_THAT(state.waits_for, HasSubstr("does not hear from the node n1"));
}

TEST(PodState, deletion_without_a_reason_is_explained_by_events) {
  auto gone = pod_with({{"phase", "Running"}});
  EXPECT_FALSE(is_unexplained(gone));
  gone["metadata"]["deletionTimestamp"] = "2026-11-21T08:00:00Z";
  EXPECT_TRUE(is_unexplained(gone));
  const auto events = [](const char* reason) {
    return json{{"items",
                 {{{"reason", "Started"}, {"message", "m"}},
                  {{"reason", reason}, {"message", "by default/high on node n1"}}}}};
  };
  const auto failure = explained(gone, events("Preempted"));
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->kind, FailureKind::infrastructure);
  EXPECT_EQ(
      failure->message,
      "the pod p on node n1 was preempted by a pod of higher priority: by default/high on node n1");
  EXPECT_THAT(explained(gone, events("TaintManagerEviction"))->message,
              HasSubstr("had to leave its node"));
  EXPECT_FALSE(explained(gone, events("Killing")));
  auto lost = events("TaintManagerEviction");
  lost["items"].push_back({{"reason", "NodeNotReady"}, {"message", "Node is not ready"}});
  EXPECT_EQ(explained(gone, lost)->message,
            "the pod p on node n1 was lost with its node, which the cluster does not hear from any "
            "more: Node is not ready");
  auto explained_itself = gone;
  explained_itself["status"]["conditions"] = {
      {{"type", "DisruptionTarget"}, {"status", "True"}, {"reason", "PreemptionByScheduler"}}};
  EXPECT_FALSE(is_unexplained(explained_itself));
  explained_itself["status"]["conditions"][0]["reason"] = "DeletionByTaintManager";
  EXPECT_TRUE(is_unexplained(explained_itself)) << "the condition does not name the taint";
}

/// The step's container only says that it waits.
TEST(PodVerdicts, a_failure_of_the_agents_init_container_is_the_pods) {
  const auto with_bringer = [](const json& state) {
    auto status = container({{"waiting", {{"reason", "PodInitializing"}}}});
    status["initContainerStatuses"] = {
        {{"name", "agent"}, {"image", "sha256:00"}, {"state", state}}};
    auto all = pod_with(status);
    all["spec"]["initContainers"] = {{{"name", "agent"}, {"image", "host/x@sha256:01"}}};
    return all;
  };
  const auto state =
      pod_state_of(with_bringer({{"waiting", {{"reason", "ErrImagePull"}, {"message", "no"}}}}));
  EXPECT_EQ(state.waits_for, "the image cannot be fetched (host/x@sha256:01, ErrImagePull): no");
  EXPECT_EQ(state.unfetched, "host/x@sha256:01");
  EXPECT_EQ(pod_state_of(with_bringer({{"terminated", {{"exitCode", 0}}}})).stage, "container");

  auto failed =
      with_bringer({{"terminated", {{"exitCode", 128}, {"message", "runc: exec format error"}}}});
  failed["status"]["phase"] = "Failed";
  AttemptBuilder step(test::program({"train"}));
  const auto failure = failure_of_pod(failed, step.attempt(), "image", {});
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->message,
            "the pod p on node n1 could not start: its init container 'agent' ended with exit code "
            "128: runc: exec format error");
  EXPECT_THAT(failure->hints.front(), HasSubstr("kubernetes.io/arch"));
}

/// Its init container is `mesh`, which runs beside the step, before the agent's.
TEST(PodVerdicts, a_running_sidecar_is_not_what_the_step_waits_for) {
  const auto with_sidecar = [](const json& sidecar, const json& agent, const json& step) {
    auto status = container(step);
    status["initContainerStatuses"] = {{{"name", "mesh"}, {"state", sidecar}},
                                       {{"name", "agent"}, {"state", agent}}};
    auto all = pod_with(status);
    all["spec"]["initContainers"] = {{{"name", "mesh"}, {"restartPolicy", "Always"}},
                                     {{"name", "agent"}, {"image", "host/x@sha256:01"}}};
    return all;
  };
  const json running{{"running", json::object()}};
  const json done{{"terminated", {{"exitCode", 0}}}};
  const json initializing{{"waiting", {{"reason", "PodInitializing"}}}};
  const json unfetched{{"waiting", {{"reason", "ErrImagePull"}, {"message", "no"}}}};
  EXPECT_EQ(pod_state_of(with_sidecar(running, done, unfetched)).waits_for,
            "the image cannot be fetched (x:1, ErrImagePull): no");
  EXPECT_EQ(pod_state_of(with_sidecar(running, unfetched, initializing)).waits_for,
            "the image cannot be fetched (host/x@sha256:01, ErrImagePull): no");
  EXPECT_EQ(pod_state_of(with_sidecar(running, running, initializing)).stage, "files");
  EXPECT_EQ(pod_state_of(with_sidecar(running, done, initializing)).stage, "container");
  EXPECT_EQ(pod_state_of(with_sidecar(unfetched, initializing, initializing)).stage,
            "the image cannot be fetched");

  const json killed{{"terminated", {{"exitCode", 143}}}};
  auto failed = with_sidecar(killed, {{"terminated", {{"exitCode", 2}}}}, initializing);
  failed["status"]["phase"] = "Failed";
  AttemptBuilder step(test::program({"train"}));
  EXPECT_THAT(failure_of_pod(failed, step.attempt(), "image", {})->message,
              HasSubstr("its init container 'agent' ended with exit code 2"));
}

TEST(PodVerdicts, a_stager_that_was_killed_is_no_failure_of_the_step) {
  AttemptBuilder step(test::program({"train"}));
  const auto kind_of_init = [&](const json& terminated) {
    auto failed = pod_with(container({{"waiting", {{"reason", "PodInitializing"}}}}));
    failed["status"]["phase"] = "Failed";
    failed["status"]["initContainerStatuses"] = {
        {{"name", "agent"}, {"state", {{"terminated", terminated}}}}};
    return failure_of_pod(failed, step.attempt(), "image", {})->kind;
  };
  EXPECT_EQ(kind_of_init({{"exitCode", 137}, {"reason", "Error"}}), FailureKind::infrastructure);
  EXPECT_EQ(kind_of_init({{"exitCode", 137}, {"reason", "OOMKilled"}}), FailureKind::not_started);
  EXPECT_EQ(kind_of_init({{"exitCode", 2}, {"reason", "Error"}}), FailureKind::not_started);

  // As agent/termination_message.cpp writes it.
  const auto* message =
      R"({"not_collected": "signal 9 has ended the program that stores them", "passes": true})";
  auto failed = pod_with(container({{"terminated", {{"exitCode", 125}, {"message", message}}}}));
  failed["status"]["phase"] = "Failed";
  const auto failure = failure_of_pod(failed, step.attempt(), "image", {});
  EXPECT_EQ(failure->kind, FailureKind::infrastructure);
  EXPECT_EQ(failure->message,
            "the pod p on node n1 could not upload the step's outputs: signal 9 has ended "
            "the program that stores them");
}

TEST(PodVerdicts, name_an_input_that_the_stager_has_found_damaged) {
  auto pod = pod_with(container({{"waiting", {{"reason", "PodInitializing"}}}}));
  EXPECT_EQ(damaged_input_of(pod), "");
  const json report{{"not_fetched", "x is damaged"}, {"passes", true}, {"damaged", "ab"}};
  pod["status"]["initContainerStatuses"] = {
      {{"name", "agent"}, {"state", {{"terminated", {{"message", report.dump()}}}}}}};
  EXPECT_EQ(damaged_input_of(pod), "ab");
}

}  // namespace
}  // namespace pipeline::orchestrators::kubernetes
