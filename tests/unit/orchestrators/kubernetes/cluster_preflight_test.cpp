// The exact messages about a cluster that will not run a pipeline:
// tests/golden/kubernetes/NAME.expected. The cluster is a stand-in.
#include "orchestrators/kubernetes/preflight.hpp"

#include <deque>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/golden.hpp"
#include "support/http_server.hpp"
#include "support/run_task.hpp"
#include "unit/orchestrators/kubernetes/node_json.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using nlohmann::json;
using test::HttpExchange;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

json named(const char* name) { return {{"metadata", {{"name", name}}}}; }

class ClusterPreflight : public testing::Test {
 protected:
  ClusterPreflight() {
    nodes = {node("cpu-1", {{"cpu", "8"}, {"memory", "32Gi"}}, {{"pool", "cpu"}}),
             node("cpu-2", {{"cpu", "8"}, {"memory", "32Gi"}}, {{"pool", "cpu"}}),
             node("gpu-1", {{"cpu", "16"}, {"memory", "64Gi"}, {"nvidia.com/gpu", "4"}},
                  {{"pool", "gpu"}, {"nvidia.com/gpu.product", "Tesla-T4"}},
                  {{{"key", "nvidia.com/gpu"}, {"effect", "NoSchedule"}}})};
    objects["/api/v1/namespaces/ml"] = named("ml");
  }

  async::Task<> answer(HttpExchange& exchange) {
    const auto path = exchange.target.substr(0, exchange.target.find('?'));
    if (path == "/version") return exchange.answer(200, R"({"major": "1", "minor": "29"})");
    if (path.ends_with("/selfsubjectaccessreviews"))
      return exchange.answer(
          201, json{{"status", {{"allowed", exchange.body.find(forbidden) == std::string::npos}}}}
                   .dump());
    if (path == "/api/v1/nodes")
      return may_list_nodes
                 ? exchange.answer(200, json{{"items", nodes}}.dump())
                 : exchange.answer(403,
                                   R"({"reason": "Forbidden", "message": "nodes is forbidden"})");
    if (path.ends_with("/jobs")) {
      jobs.push_back(json::parse(exchange.body));
      return exchange.answer(refusal.is_null() ? 201 : refusal.value("code", 422),
                             refusal.is_null() ? exchange.body : refusal.dump());
    }
    if (path.ends_with("/pods") && !pod_refusal.empty())
      return exchange.answer(403, json{{"reason", "Forbidden"},
                                       {"message", "pods \"pipe-x\" is forbidden: " + pod_refusal}}
                                      .dump());
    if (objects.contains(path)) return exchange.answer(200, objects[path].dump());
    return exchange.answer(404, R"({"reason": "NotFound", "message": "not found"})");
  }

  StepSpec& add(const std::string& name, unsigned line) {
    auto& step = steps.emplace_back();
    step.name = name;
    step.line = line;
    step.command.arguments = {Template{{"true"}}};
    return step;
  }
  std::vector<core::Diagnostic> check() {
    kubernetes_api::ClusterAccess access;
    access.server = server.url();
    access.name_space = "ml";
    access.origin = "context 'test'";
    kubernetes_api::Client client(loop, access,
                                  {std::chrono::milliseconds(1), std::chrono::milliseconds(2), 2});
    std::vector<const StepSpec*> all;
    for (const auto& step : steps) all.push_back(&step);
    auto found = test::run_task(loop, check_steps(client, all, {.state = "/state"}));
    models = found.gpu_models;
    return found.obstacles;
  }
  /// As the terminal shows it.
  std::string findings() {
    const std::string source =
        "name: digits\nsteps:\n  load:\n    command: x\n  train:\n    command: x\n  test:\n    "
        "command: x\n";
    std::string text;
    for (auto diagnostic : check()) {
      diagnostic.span.column = 3;
      text += core::render(diagnostic, "pipeline.yaml", source) + "\n";
    }
    return text;
  }
  void expect(const std::string& name) {
    test::expect_golden(
        findings(), std::filesystem::path(PIPELINE_SOURCE_DIR) / "tests/golden/kubernetes", name);
  }

  asio::io_context loop;
  json nodes, objects = json::object(), refusal;
  std::string forbidden = "none of it", pod_refusal;
  bool may_list_nodes = true;
  std::vector<json> jobs;
  std::deque<StepSpec> steps;
  GpuModels models;
  test::HttpServer server{loop, [this](HttpExchange& exchange) { return answer(exchange); }};
};

TEST_F(ClusterPreflight, golden_no_node_fits) {
  add("load", 3).settings->resources.cpu_count = 32;
  auto& train = add("train", 5);
  train.settings->resources.gpu_count = 8;
  auto& test = add("test", 7);
  test.settings->resources.gpu_count = 1;
  test.settings->resources.gpu_class = "A100";
  test.settings->kubernetes.node_selectors = {{"zone", "a"}};
  expect("no-node");
  EXPECT_EQ(models, (GpuModels{{"nvidia.com/gpu.product", {"Tesla-T4"}}}));
}

TEST_F(ClusterPreflight, golden_objects_that_are_not_there) {
  objects["/api/v1/namespaces/ml/secrets"] = {
      {"items", {named("hugging-face"), named("registry")}}};
  objects["/api/v1/namespaces/ml/persistentvolumeclaims/datasets"] = named("datasets");
  for (const auto& [name, line] : {std::pair("load", 3u), std::pair("train", 5u)}) {
    auto& own = add(name, line).settings->kubernetes;
    own.env = json::array({"TOKEN=secret/huging-face/token"});
    own.volumes = json::array({"pvc/datasets:/data", "pvc/cache:/cache", "configmap/conf:/conf"});
  }
  steps.back().settings->kubernetes.service_account_name = "trainer";
  steps.back().settings->kubernetes.priority_class_name = "high";
  steps.back().settings->kubernetes.queue_name = "q";
  steps.front().secrets.push_back(
      {.name = "OWN"});  // goes with the Job, and so is never there before
  expect("not-there");
  EXPECT_THAT(server.asked, Not(Contains(HasSubstr("pipe-load"))));
}

TEST_F(ClusterPreflight, queue_is_looked_for_in_the_version_that_the_cluster_serves) {
  const std::string queues = "/apis/kueue.x-k8s.io/v1beta2/namespaces/ml/localqueues";
  objects["/apis/kueue.x-k8s.io"] = {
      {"preferredVersion", {{"groupVersion", "kueue.x-k8s.io/v1beta2"}}}};
  objects[queues + "/training"] = named("training");
  objects[queues] = {{"items", {named("training")}}};
  auto& step = add("train", 5);
  step.settings->kubernetes.queue_name = "training";
  EXPECT_THAT(findings(), IsEmpty());
  step.settings->kubernetes.queue_name = "trainin";
  EXPECT_THAT(findings(), AllOf(HasSubstr("there is no LocalQueue 'trainin'"),
                                HasSubstr("did you mean 'training'?")));
}

TEST_F(ClusterPreflight, golden_job_that_the_cluster_refuses) {
  add("train", 5).settings->kubernetes.annotations = {{"x", "y"}};
  refusal = {
      {"reason", "Invalid"},
      {"message", "Job.batch \"x\" is invalid: ..."},
      {"details",
       {{"causes",
         {{{"field", "spec.template.spec.containers[0].volumeMounts[5].name"},
           {"message", "Not found: \"data\""}},
          {{"field", "spec.template.spec.containers[0].resources.requests"},
           {"message", "Invalid value: \"2\": must be less than or equal to cpu limit"}}}}}}};
  expect("refused");
}

TEST_F(ClusterPreflight, golden_what_has_no_form_on_a_cluster) {
  add("load", 3).settings->resources.gpus = "all";
  add("train", 5).settings->docker.user = "nobody";
  add("test", 7).settings->kubernetes.job_patch = {{"spec", json{{"backoffLimit", 6}}}};
  expect("no-manifest");
}

TEST_F(ClusterPreflight, objects_that_we_may_not_see_are_assumed) {
  may_list_nodes = false;
  add("train", 5).settings->resources.gpu_count = 64;
  EXPECT_THAT(findings(), IsEmpty());
}

TEST_F(ClusterPreflight, cluster_that_makes_nodes_is_waited_for) {
  auto& step = add("train", 5);
  step.settings->resources.gpu_count = 64;
  EXPECT_THAT(findings(), HasSubstr("no node"));
  step.settings->kubernetes.autoscaling = true;
  EXPECT_THAT(findings(), IsEmpty());
}

TEST_F(ClusterPreflight, equal_steps_are_tried_out_once_and_nothing_is_created) {
  for (int i = 0; i < 100; ++i) add("step" + std::to_string(i), 3);
  EXPECT_THAT(findings(), IsEmpty());
  EXPECT_EQ(jobs.size(), 1u);
  EXPECT_THAT(server.asked,
              Contains("POST /apis/batch/v1/namespaces/ml/jobs?dryRun=All&fieldValidation=Strict"));
  EXPECT_THAT(server.asked, Not(Contains("POST /apis/batch/v1/namespaces/ml/jobs")));
}

TEST_F(ClusterPreflight, missing_permissions_are_reported_before_all_else) {
  forbidden = R"("resource":"secrets")";
  add("train", 5).settings->resources.gpu_count = 64;
  try {
    check();
    FAIL();
  } catch (const core::EnvironmentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("you may not run steps in the namespace ml of context "
                                        "'test': these permissions are missing: create secrets"));
    EXPECT_THAT(error.advice().front(), HasSubstr("pipe kubernetes rbac"));
  }
}

TEST_F(ClusterPreflight, webhook_without_support_for_dry_runs_is_not_an_error) {
  add("train", 5);
  refusal = {{"code", 400},
             {"reason", "BadRequest"},
             {"message", "admission webhook \"x\" does not support dry run"}};
  EXPECT_THAT(findings(), IsEmpty());
  refusal = {{"code", 403},
             {"reason", "Forbidden"},
             {"message", "admission webhook \"x\" denied the request: no team label"}};
  EXPECT_THAT(findings(), HasSubstr("denied the request: no team label"));
}

TEST_F(ClusterPreflight, reasons_that_admit_no_pod_are_reported_before_the_run_unless_temporary) {
  add("train", 5);
  pod_refusal = "failed quota: q: must specify limits.memory";
  EXPECT_THAT(findings(), AllOf(HasSubstr("step 'train': the cluster does not take its pod"),
                                HasSubstr("note: pods \"pipe-x\" is forbidden: failed quota"),
                                HasSubstr("resources: {cpu_count: 1, memory: 2GiB}")));
  EXPECT_THAT(server.asked, Contains("POST /api/v1/namespaces/ml/pods?dryRun=All"));
  pod_refusal = "exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0";
  EXPECT_THAT(findings(), HasSubstr("the quota 'q' allows pods=0, and this asks for pods=1"));
  for (const auto* passing : {"exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2",
                              "User \"ann\" cannot create resource \"pods\" in API group \"\""}) {
    pod_refusal = passing;
    EXPECT_THAT(findings(), IsEmpty()) << passing;
  }
}

TEST_F(ClusterPreflight, job_that_is_too_large_is_reported_with_its_step) {
  add("load", 3);
  auto& train = add("train", 5);
  for (int i = 0; i < 25; ++i)
    train.parameters["p" + std::to_string(i)] = json(std::string(60'000, 'x'));
  EXPECT_THAT(findings(),
              AllOf(HasSubstr("step 'train': its Job would take"),
                    HasSubstr("pass what is long in a file"), Not(HasSubstr("'load'"))));
}

TEST_F(ClusterPreflight, namespace_that_is_being_deleted_is_not_reported_as_a_missing_permission) {
  add("train", 5);
  forbidden = "jobs";
  objects["/api/v1/namespaces/ml"]["status"]["phase"] = "Terminating";
  try {
    check();
    FAIL();
  } catch (const core::EnvironmentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the namespace ml of context 'test' is being deleted"));
  }
}

}  // namespace
}  // namespace pipeline::orchestrators::kubernetes
