// What is done about a Job, row by row: what is known of it at a time, and what follows.
#include "orchestrators/kubernetes/job_watch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orchestrators/kubernetes/pod_refusal.hpp"

namespace pipeline::orchestrators::kubernetes::watching {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;
using core::StopLevel;
using testing::HasSubstr;
using Kind = JobAction::Kind;

constexpr auto startup = 60s, grace = 10s;

const json job{{"metadata", {{"name", "j"}}}};
const json suspended{{"metadata", {{"name", "j"}}}, {"spec", {{"suspend", true}}}};

json pod(const json& state) {
  return {{"metadata", {{"name", "p"}}},
          {"status",
           {{"phase", "Pending"}, {"containerStatuses", {{{"name", "step"}, {"state", state}}}}}}};
}
json waits(const char* reason) { return pod({{"waiting", {{"reason", reason}}}}); }
json unscheduled(const char* message) {
  auto pending = pod(json::object());
  pending["status"]["conditions"][0] = {
      {"type", "PodScheduled"}, {"status", "False"}, {"message", message}};
  return pending;
}
json fetching_files() {
  auto pending = waits("PodInitializing");
  pending["status"]["initContainerStatuses"][0] = {{"name", "agent"},
                                                   {"state", {{"running", json::object()}}}};
  return pending;
}
json leaving(json pod) {
  pod["metadata"]["deletionTimestamp"] = "2026-11-21T08:15:00Z";
  return pod;
}
const json running = pod({{"running", json::object()}});
const json ended = pod({{"terminated", {{"exitCode", 0}}}});
const json full_node = unscheduled("0/1 nodes are available: 1 Insufficient cpu.");
// The scheduler's words about a pod of a PodGroup that would have a node.
const json full_for_others =
    unscheduled("minCount (3) cannot be satisfied: 1 scheduled, 1 remaining");
const json closed_node = unscheduled("0/1 nodes are available: 1 node(s) were unschedulable.");

constexpr const char *quota =
                         "Error creating: pods \"p\" is forbidden: exceeded quota: two, requested: "
                         "pods=1, used: pods=2, limited: pods=2",
                     *too_small =
                         "Error creating: pods \"p\" is forbidden: exceeded quota: two, requested: "
                         "limits.cpu=4, used: limits.cpu=0, limited: limits.cpu=2",
                     *policy =
                         "Error creating: pods \"p\" is forbidden: violates PodSecurity "
                         "\"restricted:latest\": runAsNonRoot != true",
                     *webhook_away =
                         "Error creating: Internal error occurred: failed calling webhook \"x\"";

struct WatchCase {
  const char* name;
  json pod;  ///< Null: there is none.
  std::chrono::seconds at;
  JobView view{job, job};  ///< All but `pod`.
  Kind kind = Kind::wait;
  const char* text = "";  ///< A part of the notice, or of the failure.
};
const json finished{{"metadata", {{"name", "j"}}},
                    {"status", {{"conditions", {{{"type", "Failed"}, {"status", "True"}}}}}}};
JobView with_room(Room room) { return {.job = job, .pod = job, .room = room}; }
JobView refused_by(const char* message) { return {.job = job, .pod = job, .refused = message}; }

const WatchCase watch_cases[] = {
    {"no_pod_yet", {}, 59s, {job, job}},
    {"no_pod_in_time", {}, 60s, {job, job}, Kind::fail, "got no pod within 1m00s"},
    {"queue_of_a_controller", {}, 24h, {suspended, job}, Kind::wait, "its Job is suspended"},
    {"queue_of_kueue",
     {},
     24h,
     {.job = suspended, .pod = job, .queued = "insufficient quota for cpu"},
     Kind::wait,
     "Kueue does not admit its Job yet: insufficient quota for cpu"},
    {"pod_is_gone_with_its_driver", {}, 19s, {finished, job}},
    {"pod_does_not_come_back",
     {},
     20s,
     {finished, job},
     Kind::fail,
     "its Job j has ended, and its pod is not there any more"},
    {"quota_is_a_queue", {}, 24h, refused_by(quota), Kind::wait, "the quota 'two' allows pods=2"},
    {"quota_too_small_for_one", {}, 0s, refused_by(too_small), Kind::fail, "limits.cpu=2"},
    {"policy", {}, 0s, refused_by(policy), Kind::fail, "violates PodSecurity"},
    {"webhook_that_is_away", {}, 59s, refused_by(webhook_away), Kind::wait, "failed calling"},
    {"webhook_that_stays_away", {}, 60s, refused_by(webhook_away), Kind::fail, "got no pod within"},
    {"full_node", full_node, 24h, with_room(Room::taken), Kind::wait, "no node has room for it"},
    {"full_for_its_group", full_for_others, 24h, with_room(Room::taken), Kind::wait, "no node has"},
    {"nodes_not_shown", full_node, 24h, with_room(Room::unknown), Kind::wait, "Insufficient cpu"},
    {"no_node_ever", full_node, 4s, with_room(Room::never), Kind::wait, "no node takes it"},
    {"no_node_ever_is_told", full_node, 5s, with_room(Room::never), Kind::fail, "no node takes it"},
    {"closed_node", closed_node, 59s, with_room(Room::later), Kind::wait, "were unschedulable"},
    {"closed_node_stays_closed", closed_node, 60s, with_room(Room::later), Kind::fail, "no node"},
    {"not_only_for_room", closed_node, 60s, with_room(Room::taken), Kind::fail, "no node takes"},
    {"pulling", waits("ContainerCreating"), 59s, {job, job}},
    {"never_pulled", waits("ContainerCreating"), 60s, {job, job}, Kind::fail, "has not started"},
    {"pull_is_retried", waits("ImagePullBackOff"), 179s, {job, job}, Kind::wait, "be fetched"},
    {"pull_failed", waits("ImagePullBackOff"), 180s, {job, job}, Kind::fail, "be fetched"},
    {"no_such_image_name", waits("InvalidImageName"), 0s, {job, job}, Kind::fail, "is invalid"},
    {"files", fetching_files(), 24h, {job, job}},
    {"running", running, 24h, {job, job}},
    {"ended", ended, 0s, {job, job}, Kind::end},
    {"deleted_before_a_pod", {}, 0s, {.job = job, .pod = job, .job_gone = true}, Kind::end},
    {"pod_gone", running, 0s, {.job = job, .pod = job, .pod_gone = true}, Kind::end},
    {"stop_is_asked",
     running,
     0s,
     {.job = job, .pod = job, .wanted = StopLevel::graceful},
     Kind::stop},
    {"stop_while_it_waits",
     full_node,
     0s,
     {.job = job, .pod = job, .wanted = StopLevel::graceful},
     Kind::stop},
    {"shell_was_left", running, 0s, {.job = job, .pod = job, .shell_left = true}, Kind::stop},
    {"deleted_by_others", leaving(running), 0s, {job, job}, Kind::remove},
};

class JobIsWatched : public testing::TestWithParam<WatchCase> {};

TEST_P(JobIsWatched, by_rules) {
  const auto& row = GetParam();
  const JobWatch::TimePoint start(1h);
  JobView view{row.view.job,        row.pod,         row.view.job_gone,
               row.view.pod_gone,   StopLevel::none, row.view.output_ended,
               row.view.shell_left, row.view.room,   row.view.refused,
               row.view.queued};
  JobWatch watch(startup, grace);
  if (row.at > 0s) {
    EXPECT_EQ(watch.next(view, start).kind, Kind::wait);
  }
  view.wanted = row.view.wanted;
  const auto action = watch.next(view, start + row.at);
  EXPECT_EQ(action.kind, row.kind);
  EXPECT_THAT(action.failure ? action.failure->message : action.notice, HasSubstr(row.text));
  EXPECT_EQ(action.is_timed, action.kind == Kind::wait && row.pod != running);
}
INSTANTIATE_TEST_SUITE_P(Each, JobIsWatched, testing::ValuesIn(watch_cases),
                         [](const auto& one) { return one.param.name; });

TEST(JobWatch, limits_begin_again_with_each_stage_and_notices_come_once) {
  JobWatch watch(startup, grace);
  const JobWatch::TimePoint start(1h);
  const auto at = [&](std::chrono::seconds time, const json& pod, Room room = Room::taken) {
    return watch.next({.job = job, .pod = pod, .room = room}, start + time);
  };
  EXPECT_EQ(at(0s, nullptr).kind, Kind::wait);
  EXPECT_EQ(at(50s, full_node).kind, Kind::wait);
  EXPECT_THAT(at(53s, full_node).notice, HasSubstr("Insufficient cpu"));
  EXPECT_EQ(at(1000s, full_node).notice, "");
  EXPECT_EQ(at(5000s, waits("ContainerCreating")).kind, Kind::wait);
  EXPECT_EQ(at(5059s, waits("ContainerCreating")).kind, Kind::wait);
  EXPECT_EQ(at(5060s, waits("ContainerCreating")).kind, Kind::fail);
  EXPECT_EQ(watch.stopping(), StopLevel::immediate);
}

TEST(JobWatch, time_in_a_queue_does_not_count_for_later_stages) {
  JobWatch watch(startup, grace);
  const JobWatch::TimePoint start(1h);
  JobView view{.job = job, .pod = full_node, .room = Room::taken};
  EXPECT_EQ(watch.next(view, start).kind, Kind::wait);
  view.room = Room::later;
  EXPECT_EQ(watch.next(view, start + 1h).kind, Kind::wait);
  EXPECT_EQ(watch.next(view, start + 1h + 60s).kind, Kind::fail);
}

TEST(JobWatch, services_have_their_time_to_be_ready_however_long_their_checks_take) {
  auto pod = running;
  pod["spec"]["containers"] = {{{"name", "step"}},
                               {{"name", "service-db"},
                                {"image", "postgres:16"},
                                {"startupProbe", {{"failureThreshold", 30}}}}};
  pod["status"]["containerStatuses"].push_back(
      {{"name", "service-db"}, {"state", {{"running", json::object()}}}, {"started", false}});
  JobWatch watch(startup, grace);
  const JobWatch::TimePoint start(1h);
  JobView view{.job = job, .pod = pod};
  EXPECT_EQ(watch.next(view, start).kind, Kind::wait);
  EXPECT_TRUE(watch.next(view, start + 29s).is_timed);
  view.has_begun = true;
  EXPECT_EQ(watch.next(view, start + 24h).kind, Kind::wait)
      << "the services were ready before the step began";
  view.has_begun = false;
  EXPECT_EQ(watch.next(view, start + 25h).kind, Kind::wait);
  const auto late = watch.next(view, start + 25h + 30s);
  EXPECT_EQ(late.kind, Kind::fail);
  EXPECT_EQ(late.failure->message, "its service 'db' (postgres:16) was not ready within 30.0s");
}

TEST(JobWatch, stopped_pod_is_waited_for_until_its_time_is_over) {
  JobWatch watch(startup, grace);
  const JobWatch::TimePoint start(1h);
  const auto pod = leaving(running);
  JobView view{.job = job, .pod = pod, .wanted = StopLevel::graceful};
  EXPECT_EQ(watch.next(view, start).level, StopLevel::graceful);
  EXPECT_EQ(watch.next(view, start + 40s).kind, Kind::wait);
  view.output_ended = true;
  EXPECT_EQ(watch.next(view, start + 40s).kind, Kind::end) << "the agent is its last process";
  view.output_ended = false;
  EXPECT_EQ(watch.next(view, start + 41s).kind, Kind::end) << "the pod's node is lost";
  view.wanted = StopLevel::immediate;
  EXPECT_EQ(watch.next(view, start + 41s).level, StopLevel::immediate);
  EXPECT_EQ(watch.next(view, start + 51s).kind, Kind::wait)
      << "the time limit counts from the second request";
  EXPECT_EQ(watch.next(view, start + 52s).kind, Kind::end) << "the pod was stopped at once";
}

TEST(JobWatch, stop_at_once_ends_without_news_of_the_pod) {
  const JobWatch::TimePoint start(1h);
  for (const auto& pod : {json(), running}) {
    const JobView view{.job = job, .pod = pod, .wanted = StopLevel::immediate};
    JobWatch silent(startup, grace);
    EXPECT_EQ(silent.next(view, start).kind, Kind::stop);
    const auto meanwhile = silent.next(view, start + 10s);
    EXPECT_EQ(meanwhile.kind, Kind::wait);
    EXPECT_TRUE(meanwhile.is_timed);
    EXPECT_EQ(silent.next(view, start + 11s).kind, Kind::end);
  }
}

TEST(Refusals, of_different_kinds_differ) {
  EXPECT_EQ(refusal_of(quota).kind, Refusal::Kind::full);
  EXPECT_EQ(refusal_of(too_small).kind, Refusal::Kind::permanent);
  EXPECT_EQ(refusal_of(webhook_away).kind, Refusal::Kind::temporary);
  const auto asks =
      refusal_of("pods \"p\" is forbidden: failed quota: q: must specify limits.cpu,limits.memory");
  EXPECT_EQ(asks.kind, Refusal::Kind::permanent);
  EXPECT_THAT(asks.hints.front(), HasSubstr("resources: {cpu_count: 1, memory: 2GiB}"));
  for (const auto* final : {"pods \"p\" is forbidden: minimum memory usage per Container is 1Gi",
                            "admission webhook \"x\" denied the request: no team label",
                            "Pod \"p\" is invalid: spec.x: Required value"})
    EXPECT_EQ(refusal_of(final).kind, Refusal::Kind::permanent) << final;
  for (const auto* passing :
       {"pods \"p\" is forbidden: status unknown for quota: q, resources: pods",
        "pods \"p\" is forbidden: error looking up service account ns/x: serviceaccount \"x\" not "
        "found"})
    EXPECT_EQ(refusal_of(passing).kind, Refusal::Kind::temporary) << passing;
}

}  // namespace
}  // namespace pipeline::orchestrators::kubernetes::watching
