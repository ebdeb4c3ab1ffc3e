// Checks of steps against a real cluster before anything is made, and settings that reach the pod.
#include <unistd.h>

#include <gmock/gmock.h>

#include "kubernetes_api/client.hpp"
#include "kubernetes_api/json.hpp"
#include "orchestrators/kubernetes/kubernetes_orchestrator.hpp"
#include "orchestrators/kubernetes/preflight.hpp"
#include "support/attempt_builder.hpp"
#include "support/cluster.hpp"
#include "support/event_recorder.hpp"
#include "support/run_task.hpp"

namespace pipeline::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

class BeforeARun : public testing::Test {
 protected:
  BeforeARun() : client(loop, kubernetes_api::find_cluster({})) { step.name = "train"; }
  ~BeforeARun() override {
    for (const auto& path : made) run_task(loop, client.remove("clean up", path, "", std::nullopt));
  }
  /// Makes an object, which is removed when the test ends, and returns its name.
  /// @param plural the kind as it stands in paths, such as `secrets`
  /// @param more further members of the object
  std::string make(const std::string& kind, const std::string& plural, const std::string& name,
                   json more) {
    json object{{"apiVersion", "v1"},
                {"kind", kind},
                {"metadata", {{"name", "pipe-test-" + std::to_string(getpid()) + "-" + name}}}};
    object.update(more);
    const auto path = client.path("", plural);
    run_task(loop, client.create("make " + name, path, object));
    made.push_back(path + "/" + object["metadata"]["name"].get<std::string>());
    return object["metadata"]["name"];
  }
  /// Returns all diagnostics of `step` with their notes.
  std::string told() {
    std::string text;
    for (const auto& each : run_task(loop, orchestrators::kubernetes::check_steps(
                                               client, {&step}, {.state = "/state"}))
                                .obstacles)
      text += core::render(each, "", "") + "\n";
    return text;
  }
  orchestrators::AttemptResult run(AttemptBuilder& builder) {
    builder.step.settings->docker.parent_image = "debian:bookworm-slim";
    auto orchestrator = orchestrators::make_kubernetes_orchestrator(
        loop, {.root = root.path(), .state = root.path() / ".pipe", .run_id = "test"});
    return run_task(loop, prepare_and_run(*orchestrator, builder));
  }
  async::Task<orchestrators::AttemptResult> prepare_and_run(
      orchestrators::Orchestrator& orchestrator, AttemptBuilder& builder) {
    co_await orchestrator.prepare(builder.step, events, builder.cancel);
    auto result = co_await orchestrator.run(builder.attempt());
    if (result.cleanup) result.cleanup();
    co_await orchestrator.settle();
    co_return result;
  }

  asio::io_context loop;
  kubernetes_api::Client client;
  core::TemporaryFolder root;
  EventRecorder events;
  std::vector<std::string> made;
  StepSpec step;
};

TEST_F(BeforeARun, step_that_the_cluster_accepts_has_no_diagnostic) {
  EXPECT_THAT(told(), IsEmpty());
}

TEST_F(BeforeARun, more_gpus_than_any_node_has_are_refused_with_the_nodes_listed) {
  const auto nodes = run_task(loop, client.get("list nodes", "/api/v1/nodes"));
  unsigned max_gpus = 0;  // of a node
  for (const auto& node : kubernetes_api::list_at(nodes, "/items"))
    if (const auto& there = kubernetes_api::at(node, "/status/allocatable/nvidia.com~1gpu");
        there.is_string())
      max_gpus = std::max(max_gpus, static_cast<unsigned>(std::stoul(there.get<std::string>())));
  if (max_gpus == 0) GTEST_SKIP() << "no node advertises nvidia.com/gpu";
  step.settings->resources.gpu_count = 2 * max_gpus;
  const auto text = told();
  const auto wanted = std::to_string(2 * max_gpus) + " nvidia.com/gpu";
  EXPECT_THAT(
      text,
      HasSubstr("step 'train': no node of the cluster can ever take it: it asks for " + wanted));
  EXPECT_THAT(text, HasSubstr(" of " + wanted));
  for (const auto& node : kubernetes_api::list_at(nodes, "/items"))
    EXPECT_THAT(text, HasSubstr(kubernetes_api::text_at(node, "/metadata/name")));
  step.settings->resources.gpu_count = 1;
  EXPECT_THAT(told(), IsEmpty());
}

TEST_F(BeforeARun, label_and_instance_type_that_no_node_has_are_reported) {
  step.settings->kubernetes.node_selectors = {{"no-such-label", "x"}};
  EXPECT_THAT(told(), HasSubstr("no label no-such-label, which has to be x"));
  step.settings->kubernetes.node_selectors = {};
  step.settings->resources.instance_type = "p4d.24xlarge";
  EXPECT_THAT(told(), HasSubstr("label node.kubernetes.io/instance-type"));
}

TEST_F(BeforeARun, missing_objects_are_reported_together_with_similar_names) {
  const auto secret =
      make("Secret", "secrets", "hugging-face", {{"stringData", {{"token", "hush"}}}});
  step.settings->kubernetes.env = json::array({"TOKEN=secret/" + secret + "x/token"});
  step.settings->kubernetes.volumes = json::array({"pvc/no-such-claim:/data"});
  step.settings->kubernetes.service_account_name = "no-such-account";
  step.settings->kubernetes.priority_class_name = "no-such-class";
  step.settings->kubernetes.queue_name = "no-such-queue";
  const auto text = told();
  EXPECT_THAT(text,
              AllOf(HasSubstr("there is no Secret '" + secret + "x'"),
                    HasSubstr("did you mean '" + secret + "'?"), testing::Not(HasSubstr("hush"))));
  EXPECT_THAT(text,
              HasSubstr("there is no PersistentVolumeClaim 'no-such-claim' in the namespace"));
  EXPECT_THAT(text, HasSubstr("there is no ServiceAccount 'no-such-account'"));
  EXPECT_THAT(text, HasSubstr("there is no PriorityClass 'no-such-class' in the cluster"));
  EXPECT_THAT(text, testing::AnyOf(HasSubstr("the cluster has no Kueue"),
                                   HasSubstr("there is no LocalQueue")));
  step.settings->kubernetes = {};
  step.settings->kubernetes.env = json::array({"TOKEN=secret/" + secret + "/token"});
  EXPECT_THAT(told(), IsEmpty());
}

TEST_F(BeforeARun, the_settings_for_which_the_server_refuses_a_job_are_named) {
  const auto map = make("ConfigMap", "configmaps", "conf", {{"data", {{"mode", "fast"}}}});
  step.settings->kubernetes.volumes =
      json::array({"configmap/" + map + ":/etc/x", "configmap/" + map + ":/etc/x"});
  step.settings->kubernetes.tolerations =
      json::array({{{"key", "a"}, {"operator", "Exists"}, {"value", "b"}}});
  const auto text = told();
  EXPECT_THAT(
      text,
      AllOf(
          HasSubstr("the cluster does not take `kubernetes.volume_mounts` or `kubernetes.volumes`"),
          HasSubstr("must be unique")));
  EXPECT_THAT(text, HasSubstr("the cluster does not take `kubernetes.tolerations`"));
}

TEST_F(BeforeARun, missing_namespace_is_an_error_with_advice) {
  kubernetes_api::Client other(
      loop, kubernetes_api::find_cluster({.context = {}, .name_space = "no-such-namespace"}));
  try {
    run_task(loop, orchestrators::kubernetes::check_steps(other, {&step}, {.state = "/state"}));
    FAIL();
  } catch (const core::EnvironmentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("namespaces \"no-such-namespace\" not found"));
    EXPECT_THAT(error.advice().front(), HasSubstr("--namespace"));
  }
}

TEST_F(BeforeARun, secrets_and_config_maps_of_the_cluster_reach_the_step) {
  const auto secret =
      make("Secret", "secrets", "hugging-face", {{"stringData", {{"token", "hush"}}}});
  const auto map = make("ConfigMap", "configmaps", "conf", {{"data", {{"MODE", "fast"}}}});
  AttemptBuilder builder(
      shell("test $TOKEN = hush && echo $MODE $(cat /etc/conf/MODE) $(id -u) $(hostname) $NODE"));
  auto& own = builder.step.settings->kubernetes;
  own.env = json::array(
      {"TOKEN=secret/" + secret + "/token",
       {{"name", "NODE"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "spec.nodeName"}}}}}}});
  own.env_from = json::array({"configmap/" + map});
  own.volumes = json::array({"configmap/" + map + ":/etc/conf"});
  own.resources.requests = {{"cpu", "10m"}};
  own.resources.limits = {{"memory", "256Mi"}};
  own.container_security_context = {{"runAsUser", 4321}};
  own.labels = {{"team", "ml"}};
  own.additional_pod_spec_args = {{"hostname", "box"}};
  own.ttl_seconds_after_finished = 60;
  const auto result = run(builder);
  EXPECT_FALSE(result.failure) << result.failure->message << builder.log.err;
  EXPECT_THAT(builder.log.out, HasSubstr("fast fast 4321 box "));
}

TEST_F(BeforeARun, the_failure_by_a_deadline_of_the_job_names_the_deadline) {
  AttemptBuilder builder(program({"sleep", "1000"}));
  builder.step.settings->kubernetes.active_deadline_seconds = 2;
  const auto result = run(builder);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, FailureKind::timed_out) << result.failure->message;
  EXPECT_THAT(result.failure->message, HasSubstr("its Job has a deadline of 2.0s"));
}

TEST_F(BeforeARun, pod_that_no_node_takes_fails_after_pod_startup_timeout) {
  AttemptBuilder builder(program({"true"}));
  builder.step.settings->resources.gpu_count = 1000;
  builder.step.settings->kubernetes.pod_startup_timeout = std::chrono::seconds(2);
  const auto result = run(builder);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, FailureKind::not_started);
  EXPECT_THAT(result.failure->message, HasSubstr("no node takes it"));
}

}  // namespace
}  // namespace pipeline::test
