// Failures of steps on a real cluster: their messages, and that no object is left of them.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include <gmock/gmock.h>

#include "kubernetes_api/client.hpp"
#include "kubernetes_api/json.hpp"
#include "net/url.hpp"
#include "orchestrators/kubernetes/kubernetes_orchestrator.hpp"
#include "orchestrators/kubernetes/manifest.hpp"
#include "orchestrators/owner.hpp"
#include "support/attempt_builder.hpp"
#include "support/cluster.hpp"
#include "support/event_recorder.hpp"
#include "support/prepare_and_run.hpp"
#include "support/run_task.hpp"

namespace pipeline::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class OnACluster : public testing::Test {
 protected:
  OnACluster() : client(loop, kubernetes_api::find_cluster({})), state(root.path() / ".pipe") {
    orchestrator = orchestrators::make_kubernetes_orchestrator(
        loop, {.root = root.path(), .state = state, .run_id = "test"});
  }
  orchestrators::AttemptResult run(AttemptBuilder& builder) {
    builder.step.settings->docker.parent_image = "debian:bookworm-slim";
    return run_task(loop, test::prepare_and_run(*orchestrator, builder, events));
  }
  /// Returns how many objects of a kind the test's steps have. @param kind plural, such as `jobs`
  std::size_t count(const std::string& group, const std::string& kind) {
    const auto path = client.path(group, kind) + "?labelSelector=" +
                      net::url_encode("pipe.state=" + orchestrators::owner_of(state));
    return kubernetes_api::list_at(run_task(loop, client.get("list " + kind, path)), "/items")
        .size();
  }
  async::Task<> delete_pods(std::string job) {
    const auto pods = co_await client.get("list pods", client.path("", "pods") + "?labelSelector=" +
                                                           net::url_encode("job-name=" + job));
    for (const auto& pod : kubernetes_api::list_at(pods, "/items")) {
      const auto name = kubernetes_api::text_at(pod, "/metadata/name");
      co_await client.remove("delete a pod", client.path("", "pods", name), "", 1);
    }
  }

  asio::io_context loop;
  core::TemporaryFolder root;
  EventRecorder events;
  kubernetes_api::Client client;
  fs::path state;
  std::unique_ptr<orchestrators::Orchestrator> orchestrator;
};

TEST_F(OnACluster, waiting_step_that_no_node_can_take_logs_the_schedulers_words) {
  AttemptBuilder step(program({"true"}));
  step.step.settings->resources.gpu_count = 64;
  step.log.on_write = [&](const Log&) { step.cancel.stop(core::StopLevel::graceful); };
  const auto result = run(step);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, FailureKind::cancelled);
  EXPECT_THAT(step.log.err, HasSubstr("[kubernetes] waiting: no node takes it: "));
  EXPECT_THAT(step.log.err, HasSubstr("Insufficient nvidia.com/gpu"));
  EXPECT_EQ(count("batch/v1", "jobs"), 0u);
}

TEST_F(OnACluster, failure_for_lack_of_memory_names_the_limit) {
  AttemptBuilder step(shell("head -c 300000000 /dev/zero | tail"));
  step.step.settings->resources.memory = Bytes{64} << 20;
  const auto result = run(step);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, FailureKind::out_of_memory) << result.failure->message;
  EXPECT_THAT(result.failure->message, HasSubstr("its limit is 64 MiB"));
}

TEST_F(OnACluster, deletion_of_a_pod_is_an_infrastructure_failure) {
  AttemptBuilder step(shell("echo ready; sleep 1000"));
  step.log.on_write = [&](const Log&) {
    step.log.on_write = {};
    asio::co_spawn(loop, delete_pods(orchestrators::kubernetes::job_name(step.attempt())),
                   asio::detached);
  };
  const auto result = run(step);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, FailureKind::infrastructure) << result.failure->message;
  EXPECT_THAT(result.failure->message, HasSubstr("was deleted by another user or program"));
}

TEST_F(OnACluster, attempt_that_another_driver_has_started_is_joined) {
  AttemptBuilder step(shell("echo x >> $PIPE_OUTPUT_COUNT; sleep 2; echo done"));
  step.output("count", "count");
  step.step.settings->docker.parent_image = "debian:bookworm-slim";
  const pid_t driver = fork();
  if (driver == 0) {
    asio::io_context own;
    orchestrator = orchestrators::make_kubernetes_orchestrator(
        own, {.root = root.path(), .state = state, .run_id = "test"});
    run_task(own, test::prepare_and_run(*orchestrator, step, events));
    _exit(0);
  }
  while (count("batch/v1", "jobs") == 0 && waitpid(driver, nullptr, WNOHANG) == 0) usleep(50'000);
  kill(driver, SIGKILL);
  waitpid(driver, nullptr, 0);
  step.log.out.clear();
  const auto result = run(step);
  EXPECT_FALSE(result.failure) << result.failure->message;
  EXPECT_EQ(step.written("count"), "x\n");
  EXPECT_THAT(step.log.out, HasSubstr("done\n"));
}

TEST_F(OnACluster, secrets_are_removed_with_their_job) {
  AttemptBuilder step(shell("test \"$TOKEN\" = hush && echo right"));
  step.secrets = {{"TOKEN", "hush"}};
  const auto result = run(step);
  EXPECT_FALSE(result.failure) << result.failure->message;
  EXPECT_EQ(step.log.out, "right\n");
  for (int i = 0; i < 300 && count("", "secrets") > 0; ++i)
    run_task(loop, [&]() -> async::Task<> {
      asio::steady_timer pause(loop, std::chrono::milliseconds(100));
      co_await pause.async_wait(asio::use_awaitable);
    }());
  EXPECT_EQ(count("", "secrets"), 0u);
  EXPECT_EQ(count("batch/v1", "jobs"), 0u);
}

TEST_F(OnACluster, gpus_are_scheduled_by_number) {
  const auto nodes = run_task(loop, client.get("list nodes", "/api/v1/nodes"));
  if (nodes.dump().find("nvidia.com/gpu") == std::string::npos)
    GTEST_SKIP() << "no node advertises nvidia.com/gpu";
  AttemptBuilder step(
      shell("df -k /dev/shm | tail -1 | cut -d' ' -f1; echo \"[$NVIDIA_VISIBLE_DEVICES]\""));
  step.step.settings->resources.gpu_count = 2;
  const auto result = run(step);
  EXPECT_FALSE(result.failure) << result.failure->message;
  EXPECT_EQ(step.log.out, "tmpfs\n[]\n");
}

TEST_F(OnACluster, unknown_namespace_is_an_error_with_advice) {
  orchestrator = orchestrators::make_kubernetes_orchestrator(
      loop, {.root = root.path(),
             .state = state,
             .run_id = "test",
             .connection = {{"namespace", "no-such-namespace"}}});
  AttemptBuilder step(program({"true"}));
  try {
    run(step);
    FAIL();
  } catch (const core::EnvironmentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("namespaces \"no-such-namespace\" not found"));
    EXPECT_THAT(error.advice().front(), HasSubstr("--namespace"));
  }
}

/// A test in a namespace of its own, which has a quota.
class WithAQuota : public OnACluster {
 protected:
  WithAQuota() {
    json object;
    object["metadata"]["name"] = name;
    run_task(loop, client.create("make a namespace", "/api/v1/namespaces", object));
    orchestrator =
        orchestrators::make_kubernetes_orchestrator(loop, {.root = root.path(),
                                                           .state = state,
                                                           .run_id = "test",
                                                           .connection = {{"namespace", name}}});
    await("/serviceaccounts/default", "/metadata/name");
  }
  ~WithAQuota() override {
    run_task(loop, client.remove("clean up", "/api/v1/namespaces/" + name, "", std::nullopt));
  }
  /// Waits until an object of the namespace has a field.
  void await(const std::string& path, const char* field) {
    for (json found; kubernetes_api::at(found, field).is_null();) try {
        found = run_task(loop, client.get("wait", "/api/v1/namespaces/" + name + path));
      } catch (const kubernetes_api::ApiError& error) {
        ASSERT_EQ(error.status(), 404);
      }
  }
  /// Gives the namespace a quota with these limits.
  void allow(const json& hard) {
    json quota;
    quota["metadata"]["name"] = "q";
    quota["spec"]["hard"] = hard;
    run_task(loop, client.create("make a quota", "/api/v1/namespaces/" + name + "/resourcequotas",
                                 quota));
    await("/resourcequotas/q", "/status/hard");
  }
  static std::unique_ptr<AttemptBuilder> sleeper(const std::string& step) {
    auto builder = std::make_unique<AttemptBuilder>(shell("sleep 1"));
    builder->step.name = step;
    builder->step.settings->docker.parent_image = "debian:bookworm-slim";
    return builder;
  }
  /// Runs a step, and decrements `running` at its end.
  async::Task<> run_one(AttemptBuilder& builder, int& running) {
    const auto result = co_await test::prepare_and_run(*orchestrator, builder, events);
    EXPECT_FALSE(result.failure) << result.failure->message;
    --running;
  }
  /// Runs three steps at once. Returns their logs.
  std::string sweep() {
    std::vector<std::unique_ptr<AttemptBuilder>> steps;
    int running = 3;
    for (int i = 0; i < running; ++i) {
      steps.push_back(sleeper("s" + std::to_string(i)));
      asio::co_spawn(loop, run_one(*steps.back(), running), asio::detached);
    }
    loop.restart();
    while (running > 0 && loop.run_one() > 0) {
    }
    std::string text;
    for (const auto& step : steps) text += step->log.err;
    return text;
  }

  static inline int namespaces = 0;
  const std::string name =
      "pipe-test-" + std::to_string(getpid()) + "-" + std::to_string(++namespaces);
};

TEST_F(WithAQuota, steps_take_turns_with_pods) {
  allow({{"pods", "1"}});
  EXPECT_THAT(sweep(), HasSubstr("[kubernetes] waiting: the quota 'q' allows pods=1"));
}

TEST_F(WithAQuota, steps_take_turns_with_jobs) {
  allow({{"count/jobs.batch", "1"}});
  EXPECT_THAT(sweep(), HasSubstr("[kubernetes] waiting: the quota 'q' allows count/jobs.batch=1"));
}

TEST_F(WithAQuota, pod_that_is_refused_fails_at_once_with_the_reason) {
  allow({{"limits.memory", "1Gi"}});
  AttemptBuilder step(shell("true"));
  const auto begin = std::chrono::steady_clock::now();
  const auto result = run(step);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, FailureKind::not_started);
  EXPECT_THAT(result.failure->message, HasSubstr("must specify limits.memory"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(300));
}

TEST_F(WithAQuota, wait_for_a_turn_can_be_stopped) {
  allow({{"pods", "1"}});
  json pod;
  pod["metadata"]["name"] = "other";
  pod["spec"]["containers"][0] = {{"name", "x"}, {"image", "no-such-image"}};
  run_task(loop, client.create("make a pod", "/api/v1/namespaces/" + name + "/pods", pod));
  const auto step = sleeper("s");
  step->log.on_write = [&](const Log&) { step->cancel.stop(core::StopLevel::graceful); };
  const auto result = run(*step);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, FailureKind::cancelled) << result.failure->message;
  EXPECT_THAT(step->log.err, HasSubstr("the quota 'q' allows pods=1"));
}

}  // namespace
}  // namespace pipeline::test
