// A step with nodes as one Indexed Job: its description, and its end as a stand-in of an API server
// tells it.
#include "orchestrators/kubernetes/gang_job.hpp"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "async/gate.hpp"
#include "core/diagnostic.hpp"
#include "orchestrators/gang.hpp"
#include "orchestrators/kubernetes/gang_pods.hpp"
#include "orchestrators/kubernetes/job_informer.hpp"
#include "orchestrators/kubernetes/job_run.hpp"
#include "orchestrators/kubernetes/kueue.hpp"
#include "orchestrators/kubernetes/pod_group.hpp"
#include "support/attempt_builder.hpp"
#include "support/http_server.hpp"
#include "support/run_task.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using nlohmann::json;
using test::AttemptBuilder;
using test::HttpExchange;
using test::run_task;
using testing::HasSubstr;

constexpr const char* index_annotation = "batch.kubernetes.io/job-completion-index";

NodeAddresses alike() {
  NodeAddresses addresses;
  addresses.nodes = {"{node0}", "{node1}", "{node2}"};
  addresses.port = node_port;
  addresses.has_agents = addresses.nodes_share_description = true;
  return addresses;
}

class IndexedJob : public testing::Test {
 protected:
  json job() {
    step.name = "train";
    step.nodes.count = 3;
    step.command.arguments = {
        Template{{"train"}},
        Template{{"node-", Template::Reference{Template::Placeholder::node_rank, ""}}},
        Template{{"$(HOME)"}}};
    place.image = "pipe:env-1a2b";
    place.user = "1000:100";
    place.owner = "0123456789abcdef";
    place.agent = "/state/kubernetes/agent";
    place.gang_job = &shared;
    return job_manifest({.step = step,
                         .pipeline = "digits",
                         .run_id = "20261121-081500-7f3a9c",
                         .number = 1,
                         .code = "/state/code",
                         .inputs = {},
                         .outputs = "/state/work/train.1/outputs",
                         .output_names = {},
                         .scratch = "/state/work/train.1/scratch",
                         .environment = {},
                         .secrets = {},
                         .process = NodeProcess{.ranks = 3, .nodes = 3, .addresses = &addresses}},
                        place);
  }

  asio::io_context loop;
  GangJob shared{loop.get_executor()};
  NodeAddresses addresses = alike();
  StepSpec step;
  JobOptions place;
};

TEST_F(IndexedJob, gives_each_pod_the_number_of_its_node) {
  const auto made = job();
  EXPECT_EQ(made["spec"]["completionMode"], "Indexed");
  EXPECT_EQ(made["spec"]["completions"], 3);
  EXPECT_EQ(made["spec"]["parallelism"], 3);
  EXPECT_EQ(made["spec"]["backoffLimit"], 0);
  EXPECT_FALSE(made["metadata"]["labels"].contains(node_label));
  const auto& container = made["spec"]["template"]["spec"]["containers"][0];
  const std::vector<std::string> words = container["command"];
  const auto node = std::ranges::find(words, "--node");
  ASSERT_GE(words.end() - node, 3);
  EXPECT_EQ(node[1], "$(JOB_COMPLETION_INDEX)");
  EXPECT_EQ(node[2], "3");
  EXPECT_THAT(std::vector<std::string>(words.end() - 3, words.end()),
              testing::ElementsAre("train", "node-$(JOB_COMPLETION_INDEX)", "$$(HOME)"));
  EXPECT_EQ(container["env"][0]["valueFrom"]["fieldRef"]["fieldPath"],
            std::string("metadata.annotations['") + index_annotation + "']");
  EXPECT_THAT(container["env"],
              testing::Contains(json{{"name", "NODE_RANK"}, {"value", "$(JOB_COMPLETION_INDEX)"}}));
}

TEST_F(IndexedJob, waits_for_a_queue_that_may_choose_nodes_near_one_another) {
  step.settings->kubernetes.queue_name = "training";
  step.settings->kubernetes.topology.required = "example.org/rack";
  const auto made = job();
  EXPECT_EQ(made["spec"]["suspend"], true);
  EXPECT_EQ(made["metadata"]["labels"]["kueue.x-k8s.io/queue-name"], "training");
  const auto& pods = made["spec"]["template"]["metadata"];
  EXPECT_EQ(pods["annotations"]["kueue.x-k8s.io/podset-required-topology"], "example.org/rack");
}

TEST_F(IndexedJob, through_a_claim_gives_each_pod_its_own_folders) {
  place.claim = {"artifacts", "/state"};
  const auto mounts = job()["spec"]["template"]["spec"]["containers"][0]["volumeMounts"];
  EXPECT_EQ(mounts[1],
            json({{"name", "shared"},
                  {"mountPath", "/pipe/outputs"},
                  {"readOnly", false},
                  {"subPathExpr", "work/train.1/nodes/$(JOB_COMPLETION_INDEX)/outputs"}}));
}

TEST_F(IndexedJob, topology_without_a_queue_is_refused) {
  step.settings->kubernetes.topology.preferred = "example.org/rack";
  try {
    job();
    FAIL() << "the topology was accepted";
  } catch (const core::InputError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("step 'train' has `kubernetes.topology`, which only Kueue honours"));
  }
}

TEST(IndexedJobs, are_supported_from_version_1_24_on) {
  EXPECT_FALSE(has_indexed_jobs({1, 20}));
  EXPECT_FALSE(has_indexed_jobs({1, 23}));
  EXPECT_TRUE(has_indexed_jobs({1, 24}));
  EXPECT_TRUE(has_indexed_jobs({1, 35}));
}

json pod_of(unsigned index, const char* phase, std::optional<int> code = {},
            bool is_leaving = false) {
  static int version = 10;
  const auto name = "p-" + std::to_string(index);
  json pod{{"metadata",
            {{"name", name},
             {"uid", "uid-" + name},
             {"resourceVersion", std::to_string(++version)},
             {"annotations", {{index_annotation, std::to_string(index)}}}}},
           {"spec", {{"nodeName", "node" + std::to_string(index)}}},
           {"status", {{"phase", phase}, {"podIP", "10.0.0." + std::to_string(index)}}}};
  if (is_leaving) pod["metadata"]["deletionTimestamp"] = "2026-11-21T08:15:00Z";
  auto& container = pod["status"]["containerStatuses"][0];
  container["name"] = step_container;
  if (code)
    container["state"]["terminated"] = {{"exitCode", *code}, {"reason", "Error"}};
  else
    container["state"]["running"] = json::object();
  return pod;
}

struct OwnEndCase {
  const char* name;
  json pod;
  bool is_own;
};
const OwnEndCase own_end_cases[] = {
    {"never_seen", nullptr, false},
    {"runs_on", pod_of(1, "Running"), true},
    {"killed_by_the_controller", pod_of(1, "Failed", 143, true), false},
    {"killed_after_its_grace", pod_of(1, "Failed", 137, true), false},
    {"deleted_before_it_ran", pod_of(1, "Pending", {}, true), false},
    {"had_failed_by_itself", pod_of(1, "Failed", 3, true), true},
    {"failed_and_was_left_alone", pod_of(1, "Failed", 3), true},
};
class OwnEnd : public testing::TestWithParam<OwnEndCase> {};
TEST_P(OwnEnd, differs_from_an_end_by_the_gang) {
  const auto& row = GetParam();
  GangPods first(2, std::chrono::seconds(60)), second(2, std::chrono::seconds(60));
  const auto now = GangPods::TimePoint{} + std::chrono::hours(1);
  first.see(1, row.pod, now);
  first.see(0, pod_of(0, "Failed", 1), now);
  EXPECT_EQ(first.own_end(1, row.pod).has_value(), row.is_own || !row.pod.is_null())
      << "an end that was seen before the failure of another pod is the pod's own";
  second.see(0, pod_of(0, "Failed", 1), now);
  second.see(1, row.pod, now);
  const auto own = second.own_end(1, row.pod);
  EXPECT_EQ(own.has_value(), row.is_own);
  if (own) {
    EXPECT_FALSE((*own)["metadata"].contains("deletionTimestamp"));
  }
}
INSTANTIATE_TEST_SUITE_P(Each, OwnEnd, testing::ValuesIn(own_end_cases),
                         [](const auto& one) { return one.param.name; });

TEST(GangFolders, of_the_first_node_are_those_of_the_index_0) {
  AttemptBuilder builder(test::shell("true"));
  auto addresses = alike();
  auto attempt = builder.attempt();
  attempt.process = NodeProcess{.ranks = 3, .nodes = 3, .addresses = &addresses};
  const auto work = builder.folder.path();
  test::write(work / "nodes/2/outputs/old", "of an earlier driver");
  empty_folders(attempt);
  link_first_node(attempt);
  link_first_node(attempt);  // As the next try does.
  test::write(work / "nodes/0/outputs/model", "weights");
  EXPECT_EQ(builder.written("model"), "weights");
  EXPECT_FALSE(std::filesystem::exists(work / "nodes/2/outputs/old"));
  EXPECT_TRUE(std::filesystem::is_directory(work / "nodes/1/scratch.0"));
}

TEST(KueueWorkload, has_the_reasons_of_its_wait_and_its_end) {
  const auto with = [](const char* type, const char* status, const char* message) {
    return json{
        {"status",
         {{"conditions",
           {{{"type", type}, {"status", status}, {"reason", "R"}, {"message", message}}}}}}};
  };
  const char* full = "couldn't assign flavors to pod set main: insufficient quota for cpu";
  EXPECT_EQ(why_queued(with("QuotaReserved", "False", full)), full);
  EXPECT_EQ(why_queued(with("QuotaReserved", "True", "Quota reserved")), "");
  EXPECT_EQ(why_queued(with("Admitted", "False", "")), "R");
  EXPECT_EQ(why_queued(nullptr), "");
  const auto evicted = eviction_from_queue(with("Evicted", "True", "The pods were not ready"));
  EXPECT_EQ(evicted.why, "The pods were not ready");
  EXPECT_FALSE(evicted.is_preemption);
  EXPECT_EQ(eviction_from_queue(with("Evicted", "False", "x")).why, "");
  const auto preempted = eviction_from_queue(with("Preempted", "True", "to make room"));
  EXPECT_EQ(preempted.why, "to make room");
  EXPECT_TRUE(preempted.is_preemption);
}

struct PodGroupCase {
  const char* name;
  const char* versions;  ///< Of the group, as discovery lists them.
  const char* resource;  ///< Of its versions other than v1.
  const char* found;
};
constexpr const char *v1 = R"({"groupVersion": "scheduling.k8s.io/v1"})",
                     *alpha = R"({"groupVersion": "scheduling.k8s.io/v1alpha2"})",
                     *beta = R"({"groupVersion": "scheduling.k8s.io/v1beta1"})";
const PodGroupCase pod_group_cases[] = {
    {"of_1_20", "1 beta", "priorityclasses", ""},
    {"of_1_35", "1 alpha", "podgroups", ""},
    {"of_1_37", "1 beta alpha", "podgroups", "scheduling.k8s.io/v1beta1"},
    {"forbidden", "", "", ""},
};
class PodGroups : public testing::TestWithParam<PodGroupCase> {};
TEST_P(PodGroups, are_used_where_a_version_other_than_an_alpha_has_them) {
  const auto& row = GetParam();
  json versions = json::array();
  for (const auto& [word, version] :
       {std::pair("1 ", v1), std::pair("beta", beta), std::pair("alpha", alpha)})
    if (std::string(row.versions).find(word) != std::string::npos)
      versions.push_back(json::parse(version));
  asio::io_context loop;
  test::HttpServer server(loop, [&](HttpExchange& exchange) -> async::Task<> {
    json answer{{"versions", versions}};
    if (exchange.target.ends_with("/v1"))
      answer["resources"][0]["name"] = "priorityclasses";
    else
      answer["resources"][0]["name"] = row.resource;
    co_await exchange.answer(versions.empty() ? 403 : 200, answer.dump());
  });
  kubernetes_api::ClusterAccess access;
  access.server = server.url();
  kubernetes_api::Client client(loop, access, {});
  EXPECT_EQ(run_task(loop, find_pod_group_version(client)), row.found);
}
INSTANTIATE_TEST_SUITE_P(Each, PodGroups, testing::ValuesIn(pod_group_cases),
                         [](const auto& one) { return one.param.name; });

TEST_F(IndexedJob, has_pods_that_name_the_group_in_which_all_get_nodes_or_none) {
  shared.pod_group = "scheduling.k8s.io/v1beta1";
  const auto made = job();
  EXPECT_EQ(made["spec"]["template"]["spec"]["schedulingGroup"]["podGroupName"],
            made["metadata"]["name"]);
  const auto group = pod_group_manifest(made, shared.pod_group);
  EXPECT_EQ(group["metadata"]["name"], made["metadata"]["name"]);
  EXPECT_EQ(group["metadata"]["labels"], made["metadata"]["labels"]);
  EXPECT_EQ(group["spec"], json::parse(R"({"schedulingPolicy": {"gang": {"minCount": 3}},
                                           "disruptionMode": {"all": {}}})"));
  EXPECT_TRUE(can_have_pod_group(step));
  step.settings->kubernetes.scheduler_name = "volcano";
  EXPECT_FALSE(can_have_pod_group(step));
}

TEST_F(IndexedJob, has_pods_with_the_priority_of_their_group) {
  step.settings->kubernetes.priority_class_name = "high";
  EXPECT_EQ(pod_group_manifest(job(), "scheduling.k8s.io/v1")["spec"]["priorityClassName"], "high");
}

/// An API server whose Job has two pods, and a gang that follows them.
class GangOnServer : public testing::Test, public AttemptRunner {
 protected:
  async::Task<> answer(HttpExchange& exchange) {
    const auto has = [&](std::string_view part) {
      return exchange.target.find(part) != std::string::npos;
    };
    if (has("watch=") && has("/pods")) co_return co_await report(exchange, pod_events);
    if (has("watch=")) co_return co_await report(exchange, job_events);
    if (has("/log?") || has("/attach?")) co_return co_await exchange.answer(404, "{}");
    if (exchange.method == "POST") {
      jobs.push_back(json::parse(exchange.body));
      auto made = jobs.back();
      made["metadata"]["uid"] = "uid-1";
      is_made.open();
      co_return co_await exchange.answer(201, made.dump());
    }
    if (exchange.method == "DELETE") deleted.push_back(exchange.target);
    if (has("/apis/kueue.x-k8s.io/v1beta2/")) co_return co_await exchange.answer(200, workloads());
    if (has("/apis/kueue.x-k8s.io"))
      co_return co_await exchange.answer(
          200, R"({"preferredVersion": {"groupVersion": "kueue.x-k8s.io/v1beta2"}})");
    co_await exchange.answer(200, R"({"items": [], "metadata": {"resourceVersion": "1"}})");
  }

  // g++ 12 cannot compile these lists of initializers in a coroutine.
  std::string workloads() const { return json{{"items", json::array({workload})}}.dump(); }
  static std::string event_line(bool is_new, const json& object) {
    return json{{"type", is_new ? "ADDED" : "MODIFIED"}, {"object", object}}.dump() + "\n";
  }

  /// Reports all at once, as a driver hears it that was busy meanwhile.
  async::Task<> report(HttpExchange& exchange, const std::vector<json>& objects) {
    co_await exchange.begin_stream();
    co_await is_made.wait();
    std::string lines;
    std::set<std::string> known;
    for (auto object : objects) {
      const auto& name = jobs.front()["metadata"]["name"];
      auto& metadata = object["metadata"];
      if (metadata.contains("name"))
        metadata["labels"]["job-name"] = name;
      else
        metadata["name"] = name;
      const bool is_new = known.insert(metadata["name"]).second;
      lines += event_line(is_new, object);
    }
    if (!lines.empty()) co_await exchange.piece(lines);
    co_await exchange.hang();
  }

  async::Task<NodeAddresses> connect_nodes(const Attempt&, unsigned, unsigned) override {
    auto addresses = alike();
    addresses.nodes.pop_back();
    co_return addresses;
  }
  async::Task<AttemptResult> run(const Attempt& attempt) override {
    JobOptions place;
    place.user = "1000:100";
    place.gang = &pods;
    place.gang_job = &shared;
    const JobContext context{*client, *informer, removals, reports[attempt.process->node]};
    co_return co_await run_job(context, attempt, place);
  }
  async::Task<> remove_orphans(const std::function<bool(const std::string&)>&) override {
    co_return;
  }

  async::Task<AttemptResult> run_all(const Attempt& attempt) {
    co_await informer->ready(attempt.io.cancel);
    Gang gang(*this, attempt);
    auto result = co_await gang.run();
    if (result.cleanup) result.cleanup();
    co_await removals.settle();
    co_return result;
  }
  AttemptResult result() {
    kubernetes_api::ClusterAccess access;
    access.server = server.url();
    access.name_space = "ml";
    client.emplace(
        loop, access,
        async::RetryPolicy{std::chrono::milliseconds(1), std::chrono::milliseconds(2), 2});
    informer.emplace(*client, "x");
    AttemptBuilder builder(test::shell("true"));
    builder.step.nodes.count = 2;
    auto result = run_task(loop, run_all(builder.attempt()));
    EXPECT_EQ(jobs.size(), 1U);
    EXPECT_EQ(jobs.front()["spec"]["completions"], 2);
    EXPECT_TRUE(std::ranges::any_of(
        deleted, [](const auto& path) { return path.find("/jobs/") != path.npos; }));
    informer.reset();
    return result;
  }

  asio::io_context loop;
  async::Gate is_made{loop.get_executor()};
  std::vector<json> jobs, pod_events, job_events;
  std::vector<std::string> deleted;
  json workload;
  GangPods pods{2, std::chrono::seconds(60)};
  GangJob shared{loop.get_executor()};
  test::HttpServer server{loop, [this](HttpExchange& exchange) { return answer(exchange); }};
  std::optional<kubernetes_api::Client> client;
  std::optional<JobInformer> informer;
  Removals removals;
  AgentReport reports[2];
};

TEST_F(GangOnServer, succeeds_with_all_its_pods) {
  pod_events = {pod_of(0, "Running"), pod_of(1, "Running"), pod_of(1, "Succeeded", 0),
                pod_of(0, "Succeeded", 0)};
  const auto whole = result();
  EXPECT_FALSE(whole.failure) << whole.failure->message;
  EXPECT_EQ(whole.processes.at(1).machine, "node1");
}

TEST_F(GangOnServer, fails_as_the_pod_that_failed_by_itself) {
  pod_events = {pod_of(0, "Running"), pod_of(1, "Running"), pod_of(1, "Failed", 3),
                pod_of(0, "Running", {}, true), pod_of(0, "Failed", 143, true)};
  const auto whole = result();
  ASSERT_TRUE(whole.failure);
  EXPECT_EQ(whole.failure->kind, FailureKind::exit_code) << whole.failure->message;
  EXPECT_THAT(whole.failure->message, HasSubstr("rank 1 of 2, on node 1"));
}

TEST_F(GangOnServer, is_lost_with_the_pod_that_was_deleted_first) {
  pod_events = {pod_of(0, "Running"),           pod_of(1, "Running"),
                pod_of(1, "Running", {}, true), pod_of(0, "Running", {}, true),
                pod_of(0, "Failed", 143, true), pod_of(1, "Failed", 143, true)};
  const auto whole = result();
  ASSERT_TRUE(whole.failure);
  EXPECT_EQ(whole.failure->kind, FailureKind::infrastructure);
  EXPECT_THAT(whole.failure->message,
              HasSubstr("rank 1 of 2, on node 1, the pod p-1 on node node1 was deleted"));
}

TEST_F(GangOnServer, is_retried_after_an_eviction_with_the_words_of_the_queue) {
  job_events = {
      {{"metadata", {{"uid", "uid-1"}, {"resourceVersion", "5"}}}, {"spec", {{"suspend", true}}}}};
  pod_events = {pod_of(0, "Running"),           pod_of(1, "Running"),
                pod_of(0, "Running", {}, true), pod_of(1, "Running", {}, true),
                pod_of(1, "Failed", 143, true), pod_of(0, "Failed", 143, true)};
  workload["status"]["conditions"][0] = {
      {"type", "Preempted"}, {"status", "True"}, {"message", "Preempted to make room"}};
  const auto whole = result();
  ASSERT_TRUE(whole.failure);
  EXPECT_EQ(whole.failure->kind, FailureKind::infrastructure);
  EXPECT_TRUE(whole.was_preempted);
  EXPECT_THAT(
      whole.failure->message,
      HasSubstr("was ended because its Job was suspended: Kueue has evicted it: Preempted"));
}

}  // namespace
}  // namespace pipeline::orchestrators::kubernetes
