#include "orchestrators/kubernetes/manifest.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/diagnostic.hpp"
#include "support/golden.hpp"
#include "support/no_log.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class JobManifest : public testing::Test {
 protected:
  JobManifest() {
    step.name = "train";
    step.command.arguments = {Template{{"python"}}, Template{{"train.py"}},
                              Template{{"$(HOME) $$ ${x}"}}};
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
            .output_names = {{"model", "model.pkl"}},
            .scratch = "/state/scratch",
            .environment = {{"A", "costs $(5)"}, {"TOKEN", "from the file"}},
            .secrets = {{"TOKEN", "hush"}},
            .gpus = {}};
  }
  json job() { return job_manifest(attempt(), place); }
  json pod() { return job()["spec"]["template"]["spec"]; }
  json container() { return pod()["containers"][0]; }
  std::string refusal() {
    try {
      job();
    } catch (const core::InputError& error) {
      return error.what();
    }
    return "no refusal";
  }
  void expect(const std::string& name) {
    test::expect_golden(job().dump(2) + "\n",
                        std::filesystem::path(PIPELINE_SOURCE_DIR) / "tests/golden/kubernetes",
                        name);
  }

  StepSpec step;
  JobOptions place;
  test::NoLog log;
  core::CancelSource cancel;
};

TEST_F(JobManifest, settings_that_a_cluster_cannot_follow_are_refused_with_the_reason) {
  step.settings->resources.devices = json::array({1, 3});
  EXPECT_THAT(refusal(),
              HasSubstr("step 'train' names its GPUs, and a cluster gives GPUs by number"));
  EXPECT_THAT(refusal(), HasSubstr("`gpu_count: 2`"));
  step.settings->resources = {};
  step.settings->resources.gpus = "all";
  EXPECT_THAT(refusal(), HasSubstr("asks for all GPUs of its machine"));
  step.settings->resources = {};
  step.settings->docker.user = "nobody";
  EXPECT_THAT(refusal(), HasSubstr("`docker.user: nobody`: a cluster takes users by number"));
  step.settings->docker = {};
  step.settings->resources.placement_constraints = {"attribute:ecs.instance-type =~ g5.*"};
  EXPECT_THAT(refusal(), HasSubstr("a node affinity has no patterns"));
}

TEST_F(JobManifest, other_nodes_are_preferred_to_those_where_the_step_has_failed) {
  step.settings->resources.instance_type = "g5.xlarge";
  auto retried = attempt();
  retried.avoided_nodes = {"node-1", "node-2"};
  const auto affinity =
      job_manifest(retried, place)["spec"]["template"]["spec"]["affinity"]["nodeAffinity"];
  const auto& term = affinity["preferredDuringSchedulingIgnoredDuringExecution"][0];
  EXPECT_EQ(
      term["preference"]["matchFields"],
      json::array(
          {{{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", json::array({"node-1"})}},
           {{"key", "metadata.name"},
            {"operator", "NotIn"},
            {"values", json::array({"node-2"})}}}));
  EXPECT_TRUE(affinity.contains("requiredDuringSchedulingIgnoredDuringExecution"));
}

TEST_F(JobManifest, nodes_that_hold_the_inputs_are_preferred_and_not_required) {
  const auto without = pod();
  place.preferred_nodes = {{20, {"node-1", "node-2"}}, {50, {"node-3"}}};
  const auto with = pod();
  EXPECT_EQ(with["affinity"], json::parse(R"({"nodeAffinity": {
      "preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 20, "preference": {"matchExpressions": [
          {"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-1", "node-2"]}]}},
        {"weight": 50, "preference": {"matchExpressions": [
          {"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-3"]}]}}]}})"));
  auto rest = with;
  rest.erase("affinity");
  EXPECT_EQ(rest, without);
}

TEST_F(JobManifest, files_are_mounted_from_a_claim_that_holds_them) {
  place.claim = {"artifacts", "/state"};
  EXPECT_EQ(pod()["volumes"].dump().find("hostPath"), std::string::npos);
  const auto mounts = container()["volumeMounts"];
  EXPECT_EQ(mounts[0], json({{"name", "shared"},
                             {"mountPath", "/pipe/code"},
                             {"subPath", "code"},
                             {"readOnly", true}}));
  EXPECT_EQ(mounts[2], json({{"name", "shared"},
                             {"mountPath", "/pipe/outputs"},
                             {"subPath", "out"},
                             {"readOnly", false}}));
  EXPECT_EQ(pod()["volumes"].size(), 1u);
  place.claim.root = "/elsewhere";
  EXPECT_THAT(refusal(), HasSubstr("the claim 'artifacts' does not hold /state/code"));
}

TEST_F(JobManifest, permissions_for_a_bucket_are_in_the_secret_and_nowhere_else) {
  place.has_stager = true;
  place.agent_image = "pipe:agent-1";
  const StagedFiles carried{"get X-Amz-Signature=1", "put X-Amz-Signature=2"};
  const auto secret = secret_manifest(attempt(), place.owner, carried);
  ASSERT_TRUE(secret);
  EXPECT_EQ(
      (*secret)["stringData"],
      json({{"TOKEN", "hush"}, {"pipe.fetch", carried.fetch}, {"pipe.collect", carried.collect}}));
  const auto text = job().dump();
  EXPECT_EQ(text.find("Amz"), text.npos);
  EXPECT_EQ(text.find("hostPath"), text.npos);
  EXPECT_EQ(text.find("/state"), text.npos) << "the manifest has no path of this machine";
  const auto mounts = container()["volumeMounts"];
  EXPECT_FALSE(mounts.empty());
  for (const auto& mount : mounts)
    EXPECT_NE(mount["name"], "fetch") << "the step does not see how it was brought its files";
  for (const auto& mount : mounts)
    if (mount["mountPath"] == "/pipe/code" || mount["mountPath"] == "/pipe/inputs") {
      EXPECT_EQ(mount["readOnly"], true);
    }
}

TEST_F(JobManifest, a_checkpoint_through_a_bucket_is_fetched_kept_and_given_time) {
  place.has_stager = true;
  place.agent_image = "pipe:agent-1";
  const auto job_with = [&](const std::string& key) {
    auto kept = attempt();
    kept.checkpoint = "/state/checkpoints/1a2b";
    kept.checkpoint_key = key;
    return job_manifest(kept, place)["spec"]["template"]["spec"];
  };
  const auto sees_it = [](const json& container) {
    return std::ranges::any_of(container["volumeMounts"], [](const json& mount) {
      return mount["mountPath"] == "/pipe/checkpoint" && mount["readOnly"] == false;
    });
  };
  const auto pod = job_with("1a2b"), none = job_with("");
  EXPECT_TRUE(sees_it(pod["containers"][0]));
  EXPECT_TRUE(sees_it(pod["initContainers"][0])) << "the init container restores the checkpoint";
  EXPECT_THAT(pod["containers"][0]["command"].dump(), HasSubstr("--checkpoint"));
  EXPECT_GT(pod["terminationGracePeriodSeconds"], none["terminationGracePeriodSeconds"]);
  EXPECT_TRUE(sees_it(none["containers"][0]))
      << "without a bucket, the checkpoint ends with the attempt";
  EXPECT_FALSE(sees_it(none["initContainers"][0]));
  EXPECT_THAT(none["containers"][0]["command"].dump(), Not(HasSubstr("--checkpoint")));
}

TEST_F(JobManifest, only_the_stager_sees_the_nodes_cache) {
  place.has_stager = true;
  place.agent_image = "pipe:agent-1";
  const auto without = job();
  place.node_cache = {"/var/cache/pipe", "1000"};
  const auto made = pod();
  const auto& stager = made["initContainers"][0];
  const json volume{{"name", "node-cache"},
                    {"hostPath", {{"path", "/var/cache/pipe"}, {"type", "DirectoryOrCreate"}}}};
  EXPECT_EQ(made["volumes"].back(), volume);
  EXPECT_EQ(stager["volumeMounts"].back(),
            json({{"name", "node-cache"}, {"mountPath", "/pipe/cache"}}));
  EXPECT_EQ(stager["command"].back(), "1000");
  EXPECT_EQ(stager["command"][stager["command"].size() - 2], "/pipe/cache");
  EXPECT_THAT(made["containers"].dump(), Not(HasSubstr("cache")));
  place.node_cache.path = "pvc/scratch";
  EXPECT_EQ(pod()["volumes"].back(),
            json({{"name", "node-cache"}, {"persistentVolumeClaim", {{"claimName", "scratch"}}}}));
  place.node_cache = {};
  EXPECT_EQ(job(), without);
}

TEST_F(JobManifest, golden_files_through_a_bucket) {
  place.has_stager = true;
  place.agent_image = "registry.example/team/x@sha256:02";
  place.pull = true;
  step.settings->resources.memory = Bytes{1} << 30;
  expect("bucket");
}

TEST_F(JobManifest, golden_plain_step) { expect("plain"); }

TEST_F(JobManifest, golden_gpu_step) {
  auto& resources = step.settings->resources;
  resources.cpu_count = 1.5;
  resources.memory = Bytes{8} << 30;
  resources.gpu_count = 2;
  resources.instance_type = "p4d.24xlarge";
  resources.placement_constraints = {
      "attribute:ecs.availability-zone == eu-1a or attribute:pool exists"};
  step.timeout = Duration(std::chrono::hours(1));
  expect("gpus");
}

TEST_F(JobManifest, golden_agent_from_an_image) {
  place.image = "registry.example/team/x@sha256:01";
  place.pull = true;
  place.agent.clear();
  place.agent_image = "registry.example/team/x@sha256:02";
  step.settings->resources.memory = Bytes{1} << 30;
  step.settings->resources.gpu_count = 1;
  expect("agent_image");
}

TEST_F(JobManifest, agent_of_a_step_that_may_stall_reports_where_it_waits) {
  EXPECT_THAT(container()["command"].dump(), Not(HasSubstr("stalled-after")));
  step.stalled_after = Duration(std::chrono::minutes(2));
  EXPECT_THAT(container()["command"].dump(), HasSubstr(R"("--stalled-after","120000",)"));
}

TEST_F(JobManifest, an_image_of_a_platform_runs_on_nodes_of_its_architecture) {
  EXPECT_FALSE(pod().contains("nodeSelector"));
  step.settings->docker.platform = "linux/arm64/v8";
  EXPECT_EQ(pod()["nodeSelector"], json({{"kubernetes.io/arch", "arm64"}}));
  step.settings->kubernetes.node_selectors = {{"pool", "gpu"}, {"kubernetes.io/arch", "amd64"}};
  EXPECT_EQ(pod()["nodeSelector"], json({{"pool", "gpu"}, {"kubernetes.io/arch", "amd64"}}));
}

TEST_F(JobManifest, golden_step_with_all_settings) {
  auto& own = step.settings->kubernetes;
  own.node_selectors = {{"pool", "gpu"}};
  own.tolerations = json::array({"pool=gpu:NoSchedule",
                                 "spot:NoExecute",
                                 "any",
                                 {{"operator", "Exists"}, {"effect", "NoExecute"}}});
  own.resources.requests = {{"cpu", "500m"}, {"memory", "4Gi"}};
  own.resources.limits = {
      {"memory", "8Gi"}, {"ephemeral-storage", "20Gi"}, {"example.com/fpga", "1"}};
  own.env = json::array(
      {"HF_TOKEN=secret/hugging-face/token",
       "MODE=configmap/modes/mode.default",
       {{"name", "NODE"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "spec.nodeName"}}}}}}});
  own.env_from = json::array({"secret/database",
                              "configmap/hosts",
                              {{"prefix", "X_"}, {"configMapRef", {{"name", "x"}}}}});
  own.volumes = json::array({"pvc/datasets:/data:ro",
                             "pvc/cache:/cache",
                             "secret/tls:/etc/tls",
                             "configmap/conf:/etc/conf",
                             {{"name", "nfs"}, {"nfs", {{"server", "nas"}, {"path", "/x"}}}}});
  own.volume_mounts = json::array({{{"name", "nfs"}, {"mountPath", "/nfs"}}});
  own.image_pull_secrets = {"registry"};
  own.service_account_name = "trainer";
  own.labels = {{"team", "ml"}, {"app.kubernetes.io/managed-by", "not theirs to set"}};
  own.annotations = {{"example.org/note", "a b"}};
  own.priority_class_name = "high";
  own.runtime_class_name = "nvidia";
  own.scheduler_name = "volcano";
  own.queue_name = "training";
  own.container_security_context = {{"privileged", true}, {"runAsUser", 0}};
  own.pod_security_context = {{"fsGroup", 2000}};
  own.host_ipc = true;
  own.active_deadline_seconds = 7200;
  own.ttl_seconds_after_finished = 300;
  own.additional_pod_spec_args = {{"dnsPolicy", "Default"}};
  own.job_patch = {
      {"metadata", json{{"annotations", {{"example.org/patched", "yes"}}}}},
      {"spec",
       json{{"template",
             {{"spec",
               {{"hostname", "gpu"}, {"containers", {{{"name", "step"}, {"tty", true}}}}}}}}}}};
  expect("all-settings");
}

TEST_F(JobManifest, golden_gpus_are_chosen_by_what_nodes_say_of_them) {
  auto& resources = step.settings->resources;
  resources.gpu_count = 1;
  resources.gpu_class = "A100";
  resources.gpu_memory = Bytes{40} << 30;
  resources.compute_capability = "8.6";
  step.settings->kubernetes.affinity = {
      {"nodeAffinity",
       json{{"requiredDuringSchedulingIgnoredDuringExecution",
             {{"nodeSelectorTerms",
               {{{"matchExpressions",
                  {{{"key", "zone"}, {"operator", "In"}, {"values", {"a", "b"}}}}}}}}}},
            {"preferredDuringSchedulingIgnoredDuringExecution",
             {{{"weight", 1},
               {"preference",
                {{"matchExpressions", {{{"key", "new"}, {"operator", "Exists"}}}}}}}}}}},
      {"podAntiAffinity", json{{"requiredDuringSchedulingIgnoredDuringExecution",
                                {{{"topologyKey", "kubernetes.io/hostname"}}}}}}};
  place.gpu_models = {
      {"nvidia.com/gpu.product", {"NVIDIA-A100-SXM4-80GB", "NVIDIA-A100-PCIE-40GB", "Tesla-T4"}},
      {"cloud.google.com/gke-accelerator", {"nvidia-tesla-a100", "nvidia-l4"}}};
  expect("gpu-models");
}

TEST_F(JobManifest, capabilities_of_the_driver_are_a_variable_and_other_options_are_reported) {
  step.settings->resources.gpus = "2,\"capabilities=compute,video\"";
  step.settings->resources.auto_select_gpus = true;
  const auto variables = container()["env"];
  const json wanted{{"name", "NVIDIA_DRIVER_CAPABILITIES"}, {"value", "compute,video"}};
  EXPECT_NE(std::find(variables.begin(), variables.end(), wanted), variables.end()) << variables;
  EXPECT_EQ(unhonoured(step), "`resources.auto_select_gpus`");
}

TEST_F(JobManifest, a_step_that_gets_no_gpu_is_not_bound_to_nodes_with_gpus) {
  step.settings->resources.accelerator = Accelerator::automatic;
  step.settings->resources.gpu_class = "A100";
  EXPECT_FALSE(pod().contains("affinity"));
}

TEST_F(JobManifest, users_but_root_have_the_settings_that_restricted_namespaces_demand) {
  step.settings->docker.user = "1000:100";
  const json restricted{{"runAsUser", 1000},
                        {"runAsGroup", 100},
                        {"runAsNonRoot", true},
                        {"allowPrivilegeEscalation", false},
                        {"capabilities", {{"drop", {"ALL"}}}},
                        {"seccompProfile", {{"type", "RuntimeDefault"}}}};
  EXPECT_EQ(container()["securityContext"], restricted);
  step.settings->kubernetes.container_security_context = {{"capabilities", json::object()}};
  EXPECT_EQ(container()["securityContext"]["capabilities"], json::object());
  step.settings->docker.user = "0:0";
  step.settings->kubernetes.container_security_context = {};
  const auto of_root = container()["securityContext"];
  EXPECT_FALSE(of_root.contains("runAsNonRoot"));
  EXPECT_EQ(of_root["capabilities"]["drop"], json::array({"MKNOD", "SETFCAP"}));
  step.settings->docker.user = "1000:100";
  step.settings->kubernetes.container_security_context = {{"privileged", true}};
  EXPECT_FALSE(container()["securityContext"].contains("runAsNonRoot"));
}

TEST_F(JobManifest, timeout_bounds_the_pod_and_not_the_wait_for_it) {
  step.timeout = Duration(std::chrono::minutes(1));
  EXPECT_FALSE(job()["spec"].contains("activeDeadlineSeconds"));
  EXPECT_EQ(pod()["activeDeadlineSeconds"], 60 + 600 + 3600);
}

TEST_F(JobManifest, gpu_class_that_no_known_node_has_is_asked_for_by_its_own_name) {
  step.settings->resources.gpu_count = 1;
  step.settings->resources.gpu_class = "A100 80GB";
  EXPECT_EQ(pod()["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
                 ["nodeSelectorTerms"],
            json::array({{{"matchExpressions",
                           {{{"key", "nvidia.com/gpu.product"},
                             {"operator", "In"},
                             {"values", {"A100-80GB"}}}}}}}));
}

TEST_F(JobManifest, resources_with_other_names_of_gpus_count_as_gpus) {
  step.settings->resources.gpu_count = 1;
  step.settings->kubernetes.gpu_resource = "amd.com/gpu";
  EXPECT_EQ(container()["resources"]["limits"], json({{"amd.com/gpu", "1"}}));
  EXPECT_EQ(pod()["tolerations"], json::array({{{"key", "amd.com/gpu"}, {"operator", "Exists"}}}));
  step.settings->resources = {};
  step.settings->kubernetes.resources.limits = {{"nvidia.com/mig-1g.5gb", "2"}};
  EXPECT_EQ(container()["resources"]["requests"], json({{"nvidia.com/mig-1g.5gb", "2"}}));
  EXPECT_EQ(pod()["tolerations"],
            json::array({{{"key", "nvidia.com/gpu"}, {"operator", "Exists"}},
                         {{"key", "nvidia.com/mig-1g.5gb"}, {"operator", "Exists"}}}));
  EXPECT_THAT(container().dump(), testing::Not(HasSubstr("NVIDIA_VISIBLE_DEVICES")));
  EXPECT_THAT(pod().dump(), HasSubstr("/dev/shm"));
}

TEST_F(JobManifest, gpus_are_counted_for_programs_that_read_numbers) {
  step.settings->resources = {.gpu_count = 2, .gpu_ids = GpuIds::index};
  EXPECT_THAT(container()["env"],
              testing::Contains(json({{"name", "CUDA_VISIBLE_DEVICES"}, {"value", "0,1"}})));
}

TEST_F(JobManifest, fields_that_pipe_relies_on_cannot_be_patched) {
  step.settings->kubernetes.job_patch = {{"spec", json{{"backoffLimit", 3}}}};
  EXPECT_THAT(refusal(), HasSubstr("step 'train': `kubernetes.job_patch` or "
                                   "`additional_pod_spec_args` changes spec.backoffLimit"));
  EXPECT_THAT(refusal(), HasSubstr("`retry:`"));
  step.settings->kubernetes.job_patch = {};
  step.settings->kubernetes.additional_pod_spec_args = {
      {"containers", json::array({{{"name", "step"}, {"command", json::array({"sh"})}}})}};
  EXPECT_THAT(refusal(), HasSubstr("changes spec.template.spec.containers.0.command"));
  step.settings->kubernetes.additional_pod_spec_args = {
      {"containers", json::array({{{"name", "sidecar"}, {"image", "x"}}})}};
  EXPECT_EQ(refusal(), "no refusal");
  EXPECT_EQ(pod()["containers"].size(), 2u);
}

TEST_F(JobManifest, patches_leave_room_for_the_labels) {
  for (const json& metadata : {json(5), json{{"labels", "a"}}, json{{"labels", json::array()}}}) {
    step.settings->kubernetes.job_patch = {{"spec", json{{"template", {{"metadata", metadata}}}}}};
    EXPECT_THAT(refusal(), HasSubstr("`kubernetes.job_patch` makes spec.template.metadata"));
  }
  step.settings->kubernetes.job_patch = {{"spec", json{{"template", {{"metadata", nullptr}}}}}};
  EXPECT_EQ(refusal(), "no refusal");
}

TEST_F(JobManifest, secrets_are_in_a_secret_and_nowhere_else) {
  EXPECT_EQ(job().dump().find("hush"), std::string::npos);
  EXPECT_EQ(job().dump().find("from the file"),
            std::string::npos);  // the secret goes before a variable of its name
  const auto secret = secret_manifest(attempt(), place.owner);
  ASSERT_TRUE(secret);
  EXPECT_EQ((*secret)["stringData"]["TOKEN"], "hush");
  EXPECT_EQ((*secret)["metadata"]["name"], job()["metadata"]["name"]);
}

TEST_F(JobManifest, shell_is_the_attempts_pod_with_streams_and_belongs_to_no_run) {
  auto with_shell = attempt();
  with_shell.shell = ShellRequest{.words = {"sh", "-c", "echo $(A)"}, .has_terminal = true};
  with_shell.shell->id = "20261121-090000-0a1b2c";
  const auto shell = job_manifest(with_shell, place), step_job = job();
  const auto& labels = shell["spec"]["template"]["metadata"]["labels"];
  EXPECT_EQ(labels["pipe.shell"], "20261121-090000-0a1b2c");
  EXPECT_FALSE(labels.contains("pipe.run") || labels.contains("pipe.state"));
  EXPECT_NE(shell["metadata"]["name"], step_job["metadata"]["name"]);
  auto made = shell["spec"]["template"]["spec"]["containers"][0];
  EXPECT_EQ(made["command"],
            json::array({"/pipe/agent", "shell", "--terminal", "sh", "-c", "echo $$(A)"}));
  EXPECT_TRUE(made["stdin"] == true && made["stdinOnce"] == true);
  const auto of_step = container();
  for (const char* same : {"image", "imagePullPolicy", "workingDir", "volumeMounts"})
    EXPECT_EQ(made[same], of_step[same]) << same;
}

TEST_F(JobManifest, names_are_valid_on_a_cluster) {
  const auto name = job_name(attempt());
  EXPECT_EQ(job_name(attempt()), name);  // The name depends on the attempt only.
  step.name = "Train.c-0.1_" + std::string(100, 'x') + "-";
  const auto longest = job_name(attempt());
  EXPECT_LE(longest.size(), 57u);
  EXPECT_EQ(longest.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), std::string::npos)
      << longest;
  const auto labels = job_labels(attempt(), place.owner);
  EXPECT_LE(labels.at("pipe.step").size(), 63u);
  auto other = step;
  other.name += "y";
  const auto before = labels.at("pipe.step");
  step = other;
  EXPECT_NE(job_labels(attempt(), place.owner).at("pipe.step"), before);
  EXPECT_NE(job_name(attempt()), longest);
}

TEST_F(JobManifest, settings_without_effect_are_named) {
  EXPECT_EQ(unhonoured(step), "");
  step.settings->docker.network = "none";
  step.settings->docker.run_args = {{"privileged", true}};
  EXPECT_EQ(unhonoured(step), "`docker.network`, `docker.run_args`");
}

}  // namespace
}  // namespace pipeline::orchestrators::kubernetes
