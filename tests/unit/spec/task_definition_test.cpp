#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/file.hpp"
#include "settings/settings.hpp"
#include "spec/pipeline_file.hpp"

namespace pipeline::spec {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// The example of the ECS developer guide.
constexpr const char* guide = R"({
  "containerDefinitions": [
    {
      "memory": 80,
      "essential": true,
      "name": "gpu",
      "image": "nvidia/cuda:9.0-base",
      "resourceRequirements": [{"type": "GPU", "value": "2"}],
      "command": ["sh", "-c", "nvidia-smi"],
      "cpu": 100
    }
  ],
  "family": "example-ecs-gpu"
})";

/// All supported keys, and some that are not.
constexpr const char* everything = R"({
  "family": "everything",
  "cpu": "2 vCPU", "memory": "4096",
  "networkMode": "host", "ipcMode": "host", "pidMode": "task",
  "runtimePlatform": {"cpuArchitecture": "X86_64", "operatingSystemFamily": "LINUX"},
  "requiresCompatibilities": ["EC2"],
  "executionRoleArn": "arn:aws:iam::1:role/x",
  "tags": [{"key": "team", "value": "vision"}],
  "placementConstraints": [{"type": "memberOf", "expression": "attribute:ecs.instance-type == p2.8xlarge"}, {"type": "distinctInstance"}],
  "volumes": [{"name": "data", "host": {"sourcePath": "/srv/data"}}, {"name": "scratch", "host": {}}, {"name": "efs", "efsVolumeConfiguration": {"fileSystemId": "fs-1"}}],
  "containerDefinitions": [
    {
      "name": "prepare", "image": "debian:bookworm-slim", "entryPoint": ["sh", "-c"], "command": ["echo ${HOME} $x 'ü \"'; exit 0"],
      "memoryReservation": 64, "essential": false, "portMappings": [], "interactive": false
    },
    {
      "name": "train", "image": "registry.example/cuda@sha256:0000000000000000000000000000000000000000000000000000000000000000",
      "entryPoint": ["/run.sh"], "command": ["--epochs", "3"], "workingDirectory": "/srv/it's",
      "cpu": 512, "memory": 2048, "memoryReservation": 1024,
      "environment": [{"name": "B", "value": "2"}, {"name": "A", "value": "yes"}, {"name": "EMPTY"}],
      "secrets": [{"name": "TOKEN", "valueFrom": "arn:aws:ssm:eu-west-1:1:parameter/token"}],
      "dependsOn": [{"containerName": "prepare", "condition": "SUCCESS"}],
      "resourceRequirements": [{"type": "GPU", "value": "4"}],
      "mountPoints": [{"sourceVolume": "data", "containerPath": "/data", "readOnly": true}, {"sourceVolume": "scratch", "containerPath": "/scratch"},
                      {"sourceVolume": "efs", "containerPath": "/efs"}],
      "user": "1000:1000", "privileged": false, "readonlyRootFilesystem": true, "hostname": "worker", "dnsServers": ["10.0.0.2"],
      "dnsSearchDomains": ["example"], "dockerSecurityOptions": ["no-new-privileges"], "dockerLabels": {"a": "b"}, "disableNetworking": true,
      "extraHosts": [{"hostname": "h", "ipAddress": "10.0.0.3"}], "systemControls": [{"namespace": "net.core.somaxconn", "value": "1024"}],
      "ulimits": [{"name": "nofile", "softLimit": 1024, "hardLimit": 4096}],
      "linuxParameters": {"sharedMemorySize": 512, "initProcessEnabled": true, "maxSwap": 1024, "swappiness": 10,
        "capabilities": {"add": ["SYS_PTRACE"], "drop": ["NET_RAW"]},
        "devices": [{"hostPath": "/dev/fuse", "permissions": ["read", "write"]}],
        "tmpfs": [{"containerPath": "/tmp", "size": 64, "mountOptions": ["noexec"]}]},
      "logConfiguration": {"logDriver": "awslogs"}, "healthCheck": {"command": ["CMD", "true"]}, "startTimeout": 5
    },
    {
      "name": "after", "image": "debian:bookworm-slim", "command": ["true"],
      "dependsOn": [{"containerName": "train", "condition": "COMPLETE"}, {"containerName": "prepare", "condition": "START"}]
    }
  ]
})";

class TaskDefinition : public testing::Test {
 protected:
  PipelineSpec read(const std::string& text) {
    std::ofstream(file_) << text;
    LoadOptions options;
    options.notices = &notices_;
    auto pipeline = load(file_, options);
    EXPECT_TRUE(pipeline.reserve_gpus_together);
    return pipeline;
  }
  std::string error(const std::string& text) {
    try {
      read(text);
    } catch (const core::InputError& wrong) {
      return wrong.what();
    }
    return "no error";
  }
  /// Returns a task with these members, and a container with these further members.
  static std::string with(const std::string& container, const std::string& task = "") {
    return R"({"family": "f", )" + task + (task.empty() ? "" : ", ") +
           R"("containerDefinitions": [{"name": "c", "image": "i", "command": ["true"])" +
           (container.empty() ? "" : ", ") + container + "}]}";
  }
  core::TemporaryFolder folder_;
  std::filesystem::path file_ = folder_.path() / "task.json";
  std::vector<std::string> notices_;
};

std::vector<std::string> words(const Command& command) {
  std::vector<std::string> texts;
  for (const auto& argument : command.arguments)
    texts.push_back(argument.parts.empty() ? "" : std::get<std::string>(argument.parts.at(0)));
  return texts;
}

TEST_F(TaskDefinition, the_guides_example_is_a_step_with_two_gpus) {
  const auto pipeline = read(guide);
  EXPECT_EQ(pipeline.name, "example-ecs-gpu");
  EXPECT_EQ(pipeline.execution_mode, ExecutionMode::fail_fast);
  ASSERT_EQ(pipeline.steps.size(), 1U);
  const auto& step = pipeline.steps[0];
  EXPECT_EQ(step.name, "gpu");
  EXPECT_EQ(step.line, 6U) << "the step has its line in the file";
  EXPECT_THAT(words(step.command), ElementsAre("sh", "-c", "nvidia-smi"));
  EXPECT_EQ(step.settings->docker.parent_image, "nvidia/cuda:9.0-base");
  EXPECT_EQ(step.settings->docker.skip_build, true);
  EXPECT_EQ(step.settings->resources.gpu_count, 2U);
  EXPECT_EQ(step.settings->resources.memory, Bytes{80} << 20);
  EXPECT_EQ(step.settings->docker.run_args.at("cpu_shares"), 100);
  EXPECT_FALSE(step.settings->resources.cpu_count)
      << "a container's CPU units are a share, no limit";
  EXPECT_FALSE(step.cache);
  EXPECT_TRUE(*step.code && step.code->items().empty());
  EXPECT_THAT(
      notices_,
      ElementsAre(HasSubstr("task.json:9:18: 'command' of container 'gpu' is run as it stands")));
}

TEST_F(TaskDefinition, every_supported_key_is_translated) {
  const auto pipeline = read(everything);
  EXPECT_EQ(pipeline.execution_mode, ExecutionMode::fail_fast);
  EXPECT_THAT(pipeline.tags, ElementsAre("team=vision"));
  ASSERT_EQ(pipeline.steps.size(), 3U);
  const auto &prepare = pipeline.steps[0], &train = pipeline.steps[1], &after = pipeline.steps[2];
  EXPECT_THAT(words(prepare.command), ElementsAre("sh", "-c", "echo ${HOME} $x 'ü \"'; exit 0"));
  EXPECT_EQ(prepare.settings->resources.memory, Bytes{4096} << 20)
      << "the task's, where the container has none";
  EXPECT_EQ(prepare.settings->resources.cpu_count, 2.0);
  EXPECT_EQ(prepare.settings->docker.network, "host");

  EXPECT_THAT(words(train.command), ElementsAre("sh", "-c", R"(cd -- "$0" && exec "$@")",
                                                "/srv/it's", "/run.sh", "--epochs", "3"));
  EXPECT_EQ(train.environment.at("A"), "yes");
  EXPECT_EQ(train.environment.at("EMPTY"), "");
  ASSERT_EQ(train.secrets.size(), 1U);
  EXPECT_EQ(train.secrets[0].name, "TOKEN");
  EXPECT_THAT(train.after, ElementsAre("prepare"));
  const auto& resources = train.settings->resources;
  EXPECT_EQ(resources.gpu_count, 4U);
  EXPECT_EQ(resources.memory, Bytes{2048} << 20);
  EXPECT_EQ(resources.shm_size, Bytes{512} << 20);
  EXPECT_THAT(resources.placement_constraints.items(),
              ElementsAre("attribute:ecs.instance-type == p2.8xlarge"));
  const auto& docker = train.settings->docker;
  EXPECT_EQ(docker.network, "none") << "disableNetworking";
  EXPECT_EQ(docker.user, "1000:1000");
  EXPECT_EQ(docker.platform, "linux/amd64");
  EXPECT_THAT(docker.volumes.items(),
              ElementsAre("/srv/data:/data:ro", "everything-scratch:/scratch"));
  EXPECT_EQ(docker.labels.at("a"), "b");
  const json run_args = docker.run_args;
  EXPECT_EQ(
      run_args,
      json::parse(
          R"({"cap_add": ["SYS_PTRACE"], "cap_drop": ["NET_RAW"], "cpu_shares": 512, "devices": ["/dev/fuse:/dev/fuse:rw"],
    "dns": ["10.0.0.2"], "dns_search": ["example"], "extra_hosts": ["h:10.0.0.3"], "hostname": "worker", "init": true, "ipc_mode": "host",
    "mem_reservation": 1073741824, "mem_swappiness": 10, "memswap_limit": 3221225472, "read_only": true, "security_opt": ["no-new-privileges"],
    "sysctls": {"net.core.somaxconn": "1024"}, "tmpfs": {"/tmp": "size=64m,noexec"}, "ulimits": {"nofile": {"soft": 1024, "hard": 4096}}})"));
  EXPECT_THAT(after.after, ElementsAre("train"));
}

TEST_F(TaskDefinition, unsupported_keys_and_only_those_are_named_with_their_place) {
  read(everything);
  const auto notices = notices_;
  for (const char* part :
       {"'executionRoleArn' of the task definition", "'pidMode' task", "distinctInstance",
        "docker's volume 'everything-scratch'", "'efsVolumeConfiguration' of a volume",
        "'efs' is not mounted in container 'train'", "your own variable TOKEN",
        "'logConfiguration' of container 'train'", "'healthCheck' of container 'train'",
        "'startTimeout' of container 'train'", "waits for the success of 'train'",
        "does not wait for 'prepare' to start",
        "'command' of container 'after' is run as it stands"})
    EXPECT_THAT(notices, Contains(HasSubstr(part)));
  EXPECT_EQ(notices.size(), 13U) << testing::PrintToString(notices);
  EXPECT_THAT(notices, Contains(HasSubstr("task.json:4:56: 'pidMode'")));
}

/// Checks that two pipelines do the same, whatever their files and positions are.
void expect_equal(const PipelineSpec& one, const PipelineSpec& two) {
  EXPECT_EQ(one.name, two.name);
  EXPECT_EQ(one.tags, two.tags);
  EXPECT_EQ(one.execution_mode, two.execution_mode);
  ASSERT_EQ(one.steps.size(), two.steps.size());
  for (std::size_t i = 0; i < one.steps.size(); ++i) {
    const auto &a = one.steps[i], &b = two.steps[i];
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.command, b.command);
    EXPECT_EQ(a.environment, b.environment);
    EXPECT_EQ(a.after, b.after);
    EXPECT_EQ(a.allow_failure, b.allow_failure);
    EXPECT_EQ(a.cache, b.cache);
    EXPECT_EQ(a.code->items(), b.code->items());
    EXPECT_EQ(a.secrets.size(), b.secrets.size());
    EXPECT_EQ(settings::to_json(a.settings), settings::to_json(b.settings));
  }
}

TEST_F(TaskDefinition, the_imported_file_is_the_same_pipeline) {
  for (const std::string text : {guide, everything}) {
    const auto direct = read(text);
    std::vector<std::string> notices;
    const auto yaml = import_task_definition(file_, notices);
    EXPECT_EQ(notices, notices_);
    EXPECT_EQ(yaml.find('\t'), std::string::npos);
    expect_equal(direct, parse(yaml, folder_.path() / "pipeline.yaml"));
  }
}

TEST_F(TaskDefinition, text_that_looks_like_a_placeholder_is_taken_as_it_stands) {
  const auto text = with(R"("environment": [{"name": "A", "value": "${params.x} $${y} $z"}],
              "dockerLabels": {"format": "${params.x} ${level}"})");
  const auto direct = read(text);
  std::vector<std::string> notices;
  const auto imported =
      parse(import_task_definition(file_, notices), folder_.path() / "pipeline.yaml");
  for (const auto* pipeline : {&direct, &imported}) {
    const auto& step = pipeline->steps.at(0);
    EXPECT_EQ(step.environment.at("A"), "${params.x} $${y} $z");
    EXPECT_EQ(step.settings->docker.labels.at("format"), "${params.x} ${level}");
  }
}

TEST_F(TaskDefinition, output_of_describe_task_definition_is_accepted) {
  // Its last member's end; yaml-cpp 0.9 takes no comma at the begin of a line.
  const std::string inner = guide;
  const auto end = inner.find_last_not_of(" \n", inner.rfind('}') - 1);
  const auto described = read(
      R"({"taskDefinition": )" + inner.substr(0, end + 1) +
      R"(, "taskDefinitionArn": "arn:x", "revision": 3, "status": "ACTIVE", "requiresAttributes": [{"name": "x"}], "registeredAt": 1.5e9,
    "registeredBy": "me", "compatibilities": ["EC2"]}, "tags": []})");
  EXPECT_EQ(notices_.size(), 1U);
  expect_equal(described, read(guide));
}

/// Returns a task of the containers `log`, which is not essential, and `train`, and of this one.
std::string with_another(const std::string& container) {
  return R"({"family": "f", "containerDefinitions": [
    {"name": "log", "image": "i", "entryPoint": ["true"], "essential": false},
    {"name": "train", "image": "i", "entryPoint": ["true"]}, )" +
         container + "]}";
}

TEST_F(TaskDefinition, a_container_that_is_not_essential_may_fail) {
  const auto pipeline = read(with_another(
      R"({"name": "after", "image": "i", "entryPoint": ["true"],
          "dependsOn": [{"containerName": "log", "condition": "COMPLETE"}]})"));
  EXPECT_EQ(pipeline.execution_mode, ExecutionMode::fail_fast);
  EXPECT_TRUE(pipeline.steps[0].allow_failure);
  EXPECT_FALSE(pipeline.steps[1].allow_failure);
  EXPECT_THAT(pipeline.steps[2].after, ElementsAre("log"));
  EXPECT_THAT(notices_, IsEmpty()) << "COMPLETE is the end, whether it is a success or not";
}

TEST_F(TaskDefinition, a_container_for_whose_success_another_waits_may_not_fail) {
  const std::string waits = R"({"name": "after", "image": "i", "entryPoint": ["true"],
      "dependsOn": [{"containerName": "log", "condition": "SUCCESS"}])";
  auto pipeline = read(with_another(waits + "}"));
  EXPECT_FALSE(pipeline.steps[0].allow_failure) << "an essential container then cannot start";
  EXPECT_EQ(pipeline.execution_mode, ExecutionMode::fail_fast);
  EXPECT_THAT(notices_, IsEmpty());
  pipeline = read(with_another(waits + R"(, "essential": false})"));
  EXPECT_FALSE(pipeline.steps[0].allow_failure);
  EXPECT_TRUE(pipeline.steps[2].allow_failure);
  EXPECT_EQ(pipeline.execution_mode, ExecutionMode::continue_on_failure);
  EXPECT_THAT(notices_,
              ElementsAre(HasSubstr("'essential: false' of container 'log' is honoured in part")));
}

TEST_F(TaskDefinition, json_that_is_not_valid_yaml_is_read_too) {
  const auto pipeline = read(
      "{\n\t\"family\":\t\"f\",\r\n\t\"containerDefinitions\":[{\"name\":\"c\",\"image\":\"i\","
      "\"command\":[\"echo\",\"\\ud83d\\ude00 \\/ \\u00e9\\t\"]}]}\n");
  EXPECT_THAT(words(pipeline.steps[0].command), ElementsAre("echo", "\xF0\x9F\x98\x80 / é\t"));
}

TEST_F(TaskDefinition, a_pipeline_file_is_not_imported) {
  std::ofstream(file_) << "name: x\nsteps: {a: {command: x}}\n";
  std::vector<std::string> notices;
  EXPECT_THROW(
      try { import_task_definition(file_, notices); } catch (const core::InputError& wrong) {
        EXPECT_THAT(wrong.what(), HasSubstr("not an ECS task definition"));
        throw;
      },
      core::InputError);
}

TEST_F(TaskDefinition, units_and_limits_are_checked) {
  EXPECT_EQ(read(with("", R"("cpu": ".5 vcpu", "memory": "1 GB")"))
                .steps[0]
                .settings->resources.cpu_count,
            0.5);
  EXPECT_EQ(read(with("", R"("cpu": 256, "memory": 512)")).steps[0].settings->resources.memory,
            Bytes{512} << 20);
  EXPECT_EQ(read(with(R"("cpu": 0)")).steps[0].settings->docker.run_args.size(), 0U);
  EXPECT_THAT(error(with(R"("memory": 100, "memoryReservation": 200)")),
              HasSubstr("'memoryReservation' of container 'c' is more than its 'memory'"));
  EXPECT_THAT(error(with(R"("memory": 2048)", R"("memory": "1 GB")")),
              HasSubstr("more memory than the task's 1024 MiB"));
  EXPECT_THAT(error(with(R"("memory": "many")")), HasSubstr("'memory' must be a whole number"));
  EXPECT_THAT(error(with("", R"("cpu": "2 CPUs")")), HasSubstr("'cpu' must be CPU units"));
  for (const char* value :
       {"\"0\"", "\"-1\"", "\"two\"", "\"1.5\"", "\"\"", "[]", "\"99999999999999999999\""})
    EXPECT_THAT(error(with(std::string(R"("resourceRequirements": [{"type": "GPU", "value": )") +
                           value + "}]")),
                HasSubstr("'value' must be a whole number"));
  for (const char* value : {"1001", "99999999999999999999"})
    EXPECT_THAT(error(with(std::string(R"("resourceRequirements": [{"type": "GPU", "value": ")") +
                           value + "\"}]")),
                HasSubstr("'value' must be a whole number, at most 1000"));
}

/// Parts of the examples in Amazon's developer guide that cannot be imported, each in the fewest
/// words.
TEST_F(TaskDefinition, definitions_that_cannot_run_are_refused_with_the_key_and_the_reason) {
  const std::string container = R"({"name": "c", "image": "i", "command": ["true"]})";
  const std::vector<std::pair<std::string, std::string>> refused = {
      // A server, which starts as its image says.
      {R"({"family": "f", "containerDefinitions": [{"name": "web", "image": "nginx"}]})",
       "container 'web' has no command"},
      {R"({"family": "f", "containerDefinitions": [{"name": "log_router", "image": "fluent-bit",
           "firelensConfiguration": {"type": "fluentbit"}}]})",
       "container 'log_router' has no command"},
      {R"({"family": "f", "runtimePlatform": {"operatingSystemFamily": "WINDOWS_SERVER_2022_CORE"},
           "containerDefinitions": [)" +
           container + "]}",
       "'WINDOWS_SERVER_2022_CORE' containers cannot be run: only LINUX"},
      {R"({"family": "f", "containerDefinitions": [{"name": "c", "image": "i", "command": ["true"],
           "mountPoints": [{"sourceVolume": "fsx-dir", "containerPath": "/x"}]}],
           "volumes": [{"name": "fsx-vol"}]})",
       "there is no volume 'fsx-dir' under 'volumes'"},
      {R"({"family": "f", "containerDefinitions": [{"name": "c", "image": "i", "command": ["true"],
           "dependsOn": [{"containerName": "nope", "condition": "START"}]}]})",
       "container 'c' depends on 'nope', which is not a container of the task"},
      // Parts of a definition.
      {R"({"containerDefinitions": [)" + container + "]}", "the task definition has no 'family'"},
      {R"({"family": "f", "containerDefinitions": [{"secrets": [{"name": "A", "valueFrom": "b"}]}]})",
       "this container has no 'name'"},
      {R"({"family": "f", "containerDefinitions": [{"name": "c", "command": ["true"]}]})",
       "container 'c' has no 'image'"},
      {R"({"family": "", "containerDefinitions": [)" + container + "]}",
       "'name' must be a name of letters"},
      {"{\n  \"family\": \"f\",\n  ...\n}", "a map that begins with `{` is not closed"},
      {R"({"AWSTemplateFormatVersion": "2010-09-09", "Resources": {"T": {"Type": "AWS::ECS::TaskDefinition",
           "Properties": {"ContainerDefinitions": [{"Name": "c", "Image": "i"}]}}}})",
       "this is a template of CloudFormation"},
      {R"({"cluster": "c", "serviceName": "s", "taskDefinition": "train:3", "desiredCount": 2,
           "placementStrategy": [{"type": "binpack", "field": "memory"}]})",
       "describe-task-definition --task-definition train:3` prints the definition"},
  };
  for (const auto& [text, reason] : refused) {
    std::filesystem::remove(file_);
    EXPECT_THAT(error(text), HasSubstr(reason)) << text;
  }
}

TEST_F(TaskDefinition, no_value_is_left_out_in_silence) {
  const std::vector<std::pair<std::string, std::string>> of_container = {
      {R"("linuxParameters": {"capabilities": ["SYS_PTRACE"]})", "'capabilities' must be a map"},
      {R"("linuxParameters": {"initProcessEnabled": [true]})", "'run_args.init' must be"},
      {R"("linuxParameters": {"devices": [{"hostPath": "/dev/fuse", "permissions": "read"}]})",
       "'permissions' must be a list"},
      {R"("extraHosts": [{"hostname": "h", "ipAddress": "10.0.0.3", "port": 1}])",
       "unknown key 'port' in 'extraHosts'"},
  };
  for (const auto& [member, reason] : of_container)
    EXPECT_THAT(error(with(member)), HasSubstr(reason)) << member;
  const std::vector<std::pair<std::string, std::string>> of_task = {
      {R"("volumes": [{"name": "v", "host": ["/data"]}])", "'host' must be a map"},
      {R"("volumes": [{"name": "v", "host": {"path": "/data"}}])", "unknown key 'path' in 'host'"},
      {R"("runtimePlatform": "WINDOWS")", "'runtimePlatform' must be a map"},
      {R"("tags": [{"key": "a", "val": "b"}])", "unknown key 'val' in a tag"},
  };
  for (const auto& [member, reason] : of_task)
    EXPECT_THAT(error(with("", member)), HasSubstr(reason)) << member;
}

TEST_F(TaskDefinition, a_definition_that_is_cut_anywhere_is_an_error) {
  const std::string whole = guide;
  for (std::size_t length = 1; length < whole.size(); length += 3)
    for (const char* end : {"", "\\", "\"\\", "\"\\ud83d", "\"\\ud83d\\ude"})
      EXPECT_NE(error(whole.substr(0, length) + end), "no error") << length << end;
}

}  // namespace
}  // namespace pipeline::spec
