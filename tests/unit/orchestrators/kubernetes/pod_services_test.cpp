#include "orchestrators/kubernetes/pod_services.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/diagnostic.hpp"
#include "orchestrators/kubernetes/job_watch.hpp"
#include "orchestrators/kubernetes/manifest.hpp"
#include "support/attempt_builder.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;

class PodServices : public testing::Test {
 protected:
  PodServices() {
    step.name = "ask";
    step.command.arguments = {Template{{"ask"}}};
    step.services["db"] = {.image = "postgres:16",
                           .command = {"-c", "x=$(y)"},
                           .environment = {{"MODE", "fast"}, {"TOKEN", {}}},
                           .ready = {.port = 5432, .timeout = std::chrono::seconds(30)},
                           .resources = {.cpu_count = 0.5, .memory = 1024}};
    place.image = "pipe:env-1a2b";
    place.user = "1000:100";
    place.owner = "0123456789abcdef";
    place.agent = "/state/kubernetes/agent";
  }
  AttemptSpec attempt() {
    return {.step = step,
            .pipeline = "digits",
            .run_id = "20261121-081500-7f3a9c",
            .number = 2,
            .code = "/state/code",
            .inputs = {{"data", "d.csv", "/state/artifact"}},
            .outputs = "/state/out",
            .output_names = {},
            .scratch = "/state/scratch",
            .environment = {},
            .secrets = {{"TOKEN", "hush"}},
            .gpus = {}};
  }
  json pod() { return job_manifest(attempt(), place)["spec"]["template"]["spec"]; }
  json service() { return pod()["containers"][1]; }
  std::vector<std::string> mounted() {
    std::vector<std::string> targets;
    const auto container = service();
    for (const auto& mount : container["volumeMounts"]) targets.push_back(mount["mountPath"]);
    return targets;
  }

  StepSpec step;
  JobOptions place;
};

TEST_F(PodServices, are_containers_of_the_pod_with_their_names_as_host_names) {
  EXPECT_EQ(pod()["containers"][0]["name"], "step");
  EXPECT_EQ(pod()["hostAliases"],
            json::array({{{"ip", "127.0.0.1"}, {"hostnames", json::array({"db"})}}}));
  EXPECT_EQ(service()["name"], "service-db");
  EXPECT_EQ(service()["image"], "postgres:16");
  EXPECT_FALSE(service().contains("command")) << "the image's entry point runs";
  EXPECT_EQ(service()["args"], json::array({"-c", "x=$$(y)"}));
  EXPECT_EQ(service()["resources"]["limits"], (json{{"cpu", "500m"}, {"memory", "1024"}}));
  place.services = {{"db", "registry.example/postgres@sha256:02"}};
  EXPECT_EQ(service()["image"], "registry.example/postgres@sha256:02");
  step.services.clear();
  EXPECT_EQ(pod()["containers"].size(), 1u);
  EXPECT_FALSE(pod().contains("hostAliases"));
}

TEST_F(PodServices, that_have_the_same_port_are_refused) {
  step.services["other"] = {.image = "postgres:15", .ready = {.port = 5432}};
  try {
    pod();
    FAIL() << "the two services share the pod's network, and were accepted";
  } catch (const core::InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("step 'ask': the services 'db' and 'other' have the same "
                                        "port 5432"));
  }
  step.services["other"].ready.port = 5433;
  EXPECT_EQ(pod()["hostAliases"][0]["hostnames"], json::array({"db", "other"}));
}

TEST_F(PodServices, have_the_shared_memory_that_they_ask_for) {
  EXPECT_THAT(mounted(), Not(Contains("/dev/shm")));
  step.services["db"].resources.shm_size = 1 << 20;
  EXPECT_THAT(mounted(), Contains("/dev/shm"));
  EXPECT_EQ(pod()["volumes"].back(),
            (json{{"name", "memory-db"},
                  {"emptyDir", {{"medium", "Memory"}, {"sizeLimit", "1048576"}}}}));
}

TEST_F(PodServices, have_references_to_secrets_and_see_no_gpus) {
  const auto variables = service()["env"];
  const json secret{
      {"name", "TOKEN"},
      {"valueFrom", {{"secretKeyRef", {{"name", job_name(attempt())}, {"key", "TOKEN"}}}}}};
  EXPECT_THAT(variables, Contains(secret));
  EXPECT_THAT(variables, Contains(json{{"name", "MODE"}, {"value", "fast"}}));
  EXPECT_THAT(variables, Contains(json{{"name", "NVIDIA_VISIBLE_DEVICES"}, {"value", "void"}}));
  EXPECT_THAT(job_manifest(attempt(), place).dump(), Not(HasSubstr("hush")));
}

TEST_F(PodServices, read_the_steps_files_and_cannot_gain_rights) {
  EXPECT_THAT(mounted(), IsSupersetOf({"/pipe/code", "/pipe/inputs/data.csv", "/pipe/agent",
                                       services_folder}));
  EXPECT_THAT(mounted(), Not(Contains("/pipe/outputs")));
  const auto container = service();
  for (const auto& mount : container["volumeMounts"])
    EXPECT_EQ(mount["readOnly"], mount["mountPath"] != services_folder) << mount;
  EXPECT_EQ(service()["securityContext"]["allowPrivilegeEscalation"], false);
  place.has_stager = true;
  place.agent_image = "pipe:agent-1";
  EXPECT_THAT(mounted(), IsSupersetOf({"/pipe/code", "/pipe/inputs", "/pipe/bin"}));
  EXPECT_THAT(mounted(), Not(Contains("/pipe/collect")))
      << "that folder has addresses with access rights";
  EXPECT_EQ(service()["startupProbe"]["exec"]["command"][0], "/pipe/bin/agent");
}

TEST_F(PodServices, the_agent_waits_for_them_and_the_node_ends_them_with_the_step) {
  const auto command = pod()["containers"][0]["command"].get<std::vector<std::string>>();
  EXPECT_THAT(command, testing::IsSupersetOf({"--services", services_folder, "1"}));
  EXPECT_EQ(service()["startupProbe"]["exec"]["command"],
            json::array({"/pipe/agent", "probe", "/pipe/services/db", "port", "5432"}));
  EXPECT_EQ(service()["startupProbe"]["failureThreshold"], 30);
  EXPECT_EQ(service()["livenessProbe"]["exec"]["command"],
            json::array({"/pipe/agent", "needed", services_folder}));
  step.services["db"].ready = {.command = {"pg_isready", "-q"}};
  EXPECT_EQ(service()["startupProbe"]["exec"]["command"],
            json::array({"/pipe/agent", "probe", "/pipe/services/db", "run", "pg_isready", "-q"}));
}

// A running pod whose service has this state; its containers were all ready at `ready_at`, if that
// is not empty.
json pod_with_service(const json& state, const std::string& ready_at = {}) {
  return {
      {"metadata", {{"name", "p"}}},
      {"spec",
       {{"containers",
         {{{"name", "step"}},
          {{"name", "service-db"},
           {"image", "postgres:16"},
           {"startupProbe", {{"failureThreshold", 30}}}}}}}},
      {"status",
       {{"phase", "Running"},
        {"conditions",
         {{{"type", "ContainersReady"},
           {"status", "False"},
           {"lastTransitionTime", ready_at.empty() ? "2026-11-21T08:14:59Z" : ready_at}}}},
        {"containerStatuses",
         {{{"name", "step"}, {"state", {{"running", json::object()}}}},
          {{"name", "service-db"}, {"state", state}, {"started", state.contains("running")}}}}}}};
}
json service_end(int code, const std::string& at, const std::string& reason = "Error") {
  return {{"terminated",
           {{"exitCode", code},
            {"reason", reason},
            {"startedAt", "2026-11-21T08:15:00Z"},
            {"finishedAt", at}}}};
}

TEST(PodServiceEnd, has_its_time_and_its_reason) {
  const auto said = [](const json& pod) {
    const auto failure = failure_of_service(pod, false);
    return failure ? std::string(to_string(failure->kind)) + ": " + failure->message : "none";
  };
  EXPECT_EQ(said(pod_with_service({{"running", json::object()}})), "none");
  EXPECT_EQ(
      said(pod_with_service(service_end(3, "2026-11-21T08:15:02Z"))),
      "not_started: its service 'db' (postgres:16) ended with exit code 3 before it was ready");
  EXPECT_EQ(said(pod_with_service(service_end(137, "2026-11-21T08:15:31Z"))),
            "not_started: its service 'db' (postgres:16) was not ready within 30.0s");
  EXPECT_EQ(said(pod_with_service(service_end(3, "2026-11-21T08:20:00Z"), "2026-11-21T08:20:00Z")),
            "exit_code: its service 'db' (postgres:16) ended with exit code 3 while the step ran");
  EXPECT_EQ(said(pod_with_service(service_end(137, "2026-11-21T08:20:00Z", "OOMKilled"),
                                  "2026-11-21T08:20:00Z")),
            "exit_code: its service 'db' (postgres:16) was killed while the step ran because it "
            "used too much memory");
}

TEST(PodServiceEnd, soon_after_it_was_ready_is_recognised_by_the_step) {
  const auto failure =
      failure_of_service(pod_with_service(service_end(3, "2026-11-21T08:15:02Z")), true);
  EXPECT_EQ(failure->kind, FailureKind::exit_code);
  EXPECT_THAT(failure->message, HasSubstr("ended with exit code 3 while the step ran"));
}

TEST(PodServiceEnd, after_the_steps_end_does_not_count) {
  auto pod = pod_with_service(service_end(143, "2026-11-21T08:20:09Z"), "2026-11-21T08:20:00Z");
  auto& step = pod["status"]["containerStatuses"][0]["state"];
  step = {{"terminated", {{"exitCode", 1}, {"finishedAt", "2026-11-21T08:20:05Z"}}}};
  EXPECT_FALSE(failure_of_service(pod, true));
  step["terminated"]["finishedAt"] = "2026-11-21T08:20:09Z";
  EXPECT_TRUE(failure_of_service(pod, true)) << "the step may have ended because of it";
}

TEST(PodServiceEnd, ends_the_step) {
  JobWatch watch(std::chrono::seconds(60), std::chrono::seconds(10));
  const json job{{"metadata", {{"name", "j"}}}};
  const auto next = [&](const json& pod) {
    return watch.next({.job = job, .pod = pod}, JobWatch::TimePoint{} + std::chrono::hours(1));
  };
  EXPECT_EQ(next(pod_with_service({{"running", json::object()}})).kind, JobAction::Kind::wait);
  const auto action = next(pod_with_service(service_end(3, "2026-11-21T08:15:02Z")));
  EXPECT_EQ(action.kind, JobAction::Kind::fail);
  EXPECT_THAT(action.failure->message, HasSubstr("its service 'db'"));
}

TEST(PodServiceWait, for_a_missing_image_is_a_failure) {
  const auto pod = pod_with_service({{"waiting", {{"reason", "ErrImagePull"}}}});
  EXPECT_EQ(pod_state_of(pod).phase, PodState::Phase::waiting);
  EXPECT_THAT(pod_state_of(pod).failure->message, HasSubstr("postgres:16"));
  EXPECT_FALSE(services_are_ready(pod));
  EXPECT_TRUE(services_are_ready(pod_with_service({{"running", json::object()}})));
}

}  // namespace
}  // namespace pipeline::orchestrators::kubernetes
