#include "orchestrators/docker/container_spec.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "core/file.hpp"
#include "orchestrators/containers/container_end.hpp"
#include "support/no_log.hpp"

namespace pipeline::orchestrators::docker_engine {
namespace {

using nlohmann::json;

class ContainerSpec : public testing::Test {
 protected:
  ContainerSpec() {
    step.name = "train";
    step.command.arguments = {Template{{"python"}}, Template{{"train.py"}}};
  }
  AttemptSpec attempt() {
    return {.step = step,
            .pipeline = "digits",
            .run_id = "r1",
            .number = 2,
            .code = "/state/code",
            .inputs = {{"data", "d.csv", "/state/artifact"}},
            .outputs = "/state/out",
            .output_names = {{"model", "model.pkl"}},
            .scratch = "/state/scratch",
            .environment = {{"A", "1"}},
            .secrets = {{"TOKEN", "hush"}},
            .gpus = gpus};
  }
  json body() { return container_body(attempt(), place); }
  std::vector<std::string> environment() { return body()["Env"].get<std::vector<std::string>>(); }
  bool has(const std::string& variable) {
    const auto all = environment();
    return std::find(all.begin(), all.end(), variable) != all.end();
  }
  /// Returns the mount at the target.
  json mount(const std::string& target) {
    const auto mounts = body()["HostConfig"]["Mounts"];
    for (const auto& each : mounts)
      if (each["Target"] == target) return each;
    return nullptr;
  }

  void hold(const std::vector<std::string>& uuids) {
    for (const auto& uuid : uuids) gpus.push_back({.uuid = uuid});
    place.gpu_access = &access;
  }

  StepSpec step;
  std::vector<AssignedGpu> gpus;
  docker::GpuAccess access{docker::EngineInfo{}, json::parse(R"({"Runtimes": {"nvidia": {}}})")};
  test::NoLog log;
  core::CancelSource cancel;
  ContainerOptions place{.image = "sha256:1",
                         .root = "/project",
                         .home = "/home/me",
                         .user = "1000:1000",
                         .owner = "me"};
};

TEST_F(ContainerSpec, the_command_replaces_the_images_own) {
  EXPECT_EQ(body()["Entrypoint"], json::parse(R"(["python", "train.py"])"));
  EXPECT_FALSE(body().contains("Cmd"));
  EXPECT_EQ(body()["WorkingDir"], "/pipe/code");
  EXPECT_EQ(body()["Image"], "sha256:1");
}

TEST_F(ContainerSpec, folders_are_mounted_read_only_but_for_what_the_step_writes) {
  EXPECT_EQ(
      mount("/pipe/code"),
      json::parse(
          R"({"Type": "bind", "Source": "/state/code", "Target": "/pipe/code", "ReadOnly": true})"));
  EXPECT_EQ(mount("/pipe/inputs/data.csv")["Source"], "/state/artifact");
  EXPECT_EQ(mount("/pipe/inputs/data.csv")["ReadOnly"], true);
  EXPECT_EQ(mount("/pipe/outputs")["ReadOnly"], false);
  EXPECT_EQ(mount("/pipe/scratch")["ReadOnly"], false);
}

TEST_F(ContainerSpec, volumes_are_folders_or_named) {
  step.settings->docker.volumes = {"/data:/a:ro", "./sub:/b", "~/mine:/c:rw", "cache:/d", "~:/e"};
  EXPECT_EQ(
      mount("/a"),
      json::parse(R"({"Type": "bind", "Source": "/data", "Target": "/a", "ReadOnly": true})"));
  EXPECT_EQ(mount("/b")["Source"], "/project/sub");
  EXPECT_EQ(mount("/c")["Source"], "/home/me/mine");
  EXPECT_EQ(mount("/c")["ReadOnly"], false);
  EXPECT_EQ(
      mount("/d"),
      json::parse(R"({"Type": "volume", "Source": "cache", "Target": "/d", "ReadOnly": false})"));
  EXPECT_EQ(mount("/e")["Source"], "/home/me/");
}

TEST_F(ContainerSpec, a_writable_folder_is_home_unless_settings_name_another) {
  EXPECT_TRUE(has("HOME=/pipe/scratch") && has("TMPDIR=/pipe/scratch") &&
              has("PYTHONDONTWRITEBYTECODE=1"));
  EXPECT_TRUE(has("A=1") && has("TOKEN=hush") && has("PIPE_INPUT_DATA=/pipe/inputs/data.csv") &&
              has("PIPE_ATTEMPT=2"));
  step.settings->docker.environment["HOME"] = "/root";
  step.settings->docker.runtime_environment["TMPDIR"] = "/tmp";
  EXPECT_TRUE(has("TMPDIR=/tmp"));
  for (const auto& variable : environment())
    EXPECT_FALSE(variable.starts_with("HOME=")) << "the image's own is kept";
}

TEST_F(ContainerSpec, a_user_that_the_image_does_not_know_has_a_name_and_an_entry) {
  place.user_name = "pipe";
  place.passwd = "/state/users/1";
  EXPECT_TRUE(has("USER=pipe") && has("LOGNAME=pipe"));
  step.settings->docker.environment["USER"] = "ann";
  EXPECT_FALSE(has("USER=pipe")) << "the image's own is kept";
  EXPECT_EQ(mount("/etc/passwd"), json::parse(R"({"Type": "bind", "Source": "/state/users/1",
                                                  "Target": "/etc/passwd", "ReadOnly": true})"));
  place.elsewhere = true;
  EXPECT_TRUE(mount("/etc/passwd").is_null()) << "the file is copied instead of mounted";
  place.elsewhere = false;
  place.passwd.clear();
  EXPECT_TRUE(mount("/etc/passwd").is_null());
}

TEST_F(ContainerSpec, the_user_is_the_caller_unless_the_settings_name_one) {
  EXPECT_EQ(body()["User"], "1000:1000");
  step.settings->docker.user = "app";
  EXPECT_EQ(body()["User"], "app");
}

TEST_F(ContainerSpec, limits_are_hard_and_exact) {
  EXPECT_FALSE(body()["HostConfig"].contains("Memory"));
  step.settings->resources.memory = 1ULL << 30;
  step.settings->resources.cpu_count = 0.29;
  step.settings->resources.shm_size = 1 << 20;
  const auto host = body()["HostConfig"];
  EXPECT_EQ(host["Memory"], 1 << 30);
  EXPECT_EQ(host["MemorySwap"], 1 << 30);
  EXPECT_EQ(host["NanoCpus"], 290000000);
  EXPECT_EQ(host["ShmSize"], 1 << 20);
}

TEST_F(ContainerSpec, a_step_without_gpus_sees_none_whatever_the_image_has) {
  EXPECT_TRUE(has("NVIDIA_VISIBLE_DEVICES=void"));
  step.settings->docker.runtime_environment = {{"NVIDIA_VISIBLE_DEVICES", "all"},
                                               {"NVIDIA_DRIVER_CAPABILITIES", "all"}};
  EXPECT_TRUE(has("NVIDIA_VISIBLE_DEVICES=void") && !has("NVIDIA_VISIBLE_DEVICES=all") &&
              has("NVIDIA_DRIVER_CAPABILITIES=all"));
  EXPECT_FALSE(body()["HostConfig"].contains("DeviceRequests") ||
               body()["HostConfig"].contains("Runtime"));
  EXPECT_FALSE(body()["Labels"].contains("pipe.gpus"));
}

TEST_F(ContainerSpec, a_step_with_gpus_gets_those_and_labels_name_them) {
  hold({"GPU-a", "GPU-b"});
  step.settings->docker.runtime_environment = {{"NVIDIA_VISIBLE_DEVICES", "all"}};
  EXPECT_EQ(body()["HostConfig"]["DeviceRequests"][0]["DeviceIDs"],
            json::parse(R"(["GPU-a", "GPU-b"])"));
  EXPECT_TRUE(has("NVIDIA_VISIBLE_DEVICES=GPU-a,GPU-b") && !has("NVIDIA_VISIBLE_DEVICES=all"));
  EXPECT_EQ(body()["Labels"]["pipe.gpus"], "GPU-a,GPU-b");
}

TEST_F(ContainerSpec, gpus_are_counted_for_programs_that_read_numbers) {
  step.settings->resources.gpu_ids = GpuIds::index;
  EXPECT_FALSE(has("CUDA_VISIBLE_DEVICES=0")) << "the attempt has no GPUs";
  hold({"GPU-a", "GPU-b"});
  EXPECT_TRUE(has("CUDA_VISIBLE_DEVICES=0,1"));
  step.settings->docker.runtime_environment = {{"CUDA_VISIBLE_DEVICES", "1"}};
  EXPECT_TRUE(has("CUDA_VISIBLE_DEVICES=1") && !has("CUDA_VISIBLE_DEVICES=0,1"));
}

TEST_F(ContainerSpec, the_gate_is_before_the_command_only_where_it_is_wanted) {
  hold({"GPU-a"});
  EXPECT_EQ(body()["Entrypoint"], json::parse(R"(["python", "train.py"])"));
  place.gate = true;
  const auto entry = body()["Entrypoint"];
  ASSERT_EQ(entry.size(), 7U);
  EXPECT_EQ(entry[0], "/bin/sh");
  EXPECT_EQ(entry[4], "GPU-a");
  EXPECT_EQ(entry[6], "train.py");
}

TEST_F(ContainerSpec, gpu_steps_have_shared_memory_for_data_loaders) {
  place.memory = 64ULL << 30;
  EXPECT_FALSE(body()["HostConfig"].contains("ShmSize")) << "the engine's own default";
  hold({"GPU-a"});
  EXPECT_EQ(body()["HostConfig"]["ShmSize"], 32ULL << 30);
  step.settings->resources.memory = 8ULL << 30;
  EXPECT_EQ(body()["HostConfig"]["ShmSize"], 4ULL << 30);
  step.settings->resources.shm_size = 1ULL << 30;
  EXPECT_EQ(body()["HostConfig"]["ShmSize"], 1ULL << 30);
}

TEST_F(ContainerSpec, labels_name_the_attempt_and_cannot_be_overridden) {
  step.settings->docker.labels = {{"team", "vision"}, {"pipe.run", "another"}};
  EXPECT_EQ(
      body()["Labels"],
      json::parse(
          R"({"team": "vision", "pipe.run": "r1", "pipe.step": "train", "pipe.attempt": "2", "pipe.pipeline": "digits", "pipe.state": "me"})"));
  EXPECT_EQ(container_name(attempt()), "pipe-r1-train-2");
}

TEST_F(ContainerSpec, withholds_rights_that_reach_beyond_it_unless_they_are_asked_for) {
  auto& arguments = step.settings->docker.run_args;
  const auto rights = [&] {
    const auto host = body()["HostConfig"];
    return json{host.value("SecurityOpt", json()), host.value("CapDrop", json())}.dump();
  };
  EXPECT_EQ(rights(), R"([["no-new-privileges"],["MKNOD","SETFCAP"]])");
  arguments["security_opt"] = {"seccomp=unconfined"};
  arguments["cap_drop"] = {"cap_mknod", "NET_RAW"};
  EXPECT_EQ(rights(),
            R"([["seccomp=unconfined","no-new-privileges"],["cap_mknod","NET_RAW","SETFCAP"]])");
  arguments.erase("cap_drop");
  arguments["security_opt"] = {"no-new-privileges=false"};
  arguments["cap_add"] = {"CAP_SETFCAP"};
  EXPECT_EQ(rights(), R"([["no-new-privileges=false"],["MKNOD"]])");
  arguments["cap_add"] = {"ALL"};
  EXPECT_EQ(rights(), R"([["no-new-privileges=false"],null])");
  arguments = {{"privileged", true}};
  EXPECT_EQ(rights(), "[null,null]");
}

TEST_F(ContainerSpec, run_args_become_fields_of_the_api) {
  auto& arguments = step.settings->docker.run_args;
  arguments["cap_add"] = {"SYS_PTRACE"};
  arguments["devices"] = {"/dev/fuse", "/dev/a:/dev/b:r"};
  arguments["hostname"] = "box";
  arguments["init"] = false;
  arguments["ulimits"] = json::parse(R"({"nofile": {"soft": 10, "hard": 20}})");
  arguments["tmpfs"] = json::parse(R"({"/fast": "size=1g"})");
  const auto all = body();
  const auto host = all["HostConfig"];
  EXPECT_EQ(host["CapAdd"], json::parse(R"(["SYS_PTRACE"])"));
  EXPECT_EQ(
      host["Devices"][0],
      json::parse(
          R"({"PathOnHost": "/dev/fuse", "PathInContainer": "/dev/fuse", "CgroupPermissions": "rwm"})"));
  EXPECT_EQ(
      host["Devices"][1],
      json::parse(
          R"({"PathOnHost": "/dev/a", "PathInContainer": "/dev/b", "CgroupPermissions": "r"})"));
  EXPECT_EQ(all["Hostname"], "box");
  EXPECT_EQ(host["Init"], false);
  EXPECT_EQ(host["Ulimits"], json::parse(R"([{"Name": "nofile", "Soft": 10, "Hard": 20}])"));
  EXPECT_EQ(host["Tmpfs"]["/fast"], "size=1g");
}

TEST_F(ContainerSpec, settings_that_change_the_result_are_part_of_the_environment) {
  const auto before = containers::runtime_part(step.settings->docker);
  step.settings->docker.labels["a"] = "b";
  EXPECT_EQ(containers::runtime_part(step.settings->docker), before);
  for (const auto& change : std::vector<std::function<void(DockerSettings&)>>{
           [](auto& s) { s.user = "app"; }, [](auto& s) { s.network = "none"; },
           [](auto& s) { s.platform = "linux/arm64"; }, [](auto& s) { s.volumes = {"a:/b"}; },
           [](auto& s) { s.runtime_environment["A"] = "1"; },
           [](auto& s) { s.run_args["privileged"] = true; }}) {
    auto changed = step.settings->docker;
    change(changed);
    EXPECT_NE(containers::runtime_part(changed), before);
  }
}

TEST_F(ContainerSpec, a_volume_that_is_missing_is_named_where_the_engine_would_make_it) {
  const core::TemporaryFolder folder;
  place.root = folder.path();
  step.settings->docker.volumes = {"name:/a", ".:/b", "./missing:/c"};
  const auto failure = missing_volume(step, place);
  ASSERT_TRUE(failure);
  EXPECT_NE(failure->message.find((folder.path() / "missing").string()), std::string::npos)
      << failure->message;
  core::make_folders(folder.path() / "missing");
  EXPECT_FALSE(missing_volume(step, place));
}

TEST_F(ContainerSpec, ends_are_described) {
  step.settings->resources.memory = 1ULL << 30;
  const auto end = [&](int code, bool oom, const std::string& errors = "") {
    const auto failure = containers::failure_of({code, oom, errors}, attempt(), "img");
    return failure ? std::string(to_string(failure->kind)) + ": " + failure->message : "fine";
  };
  EXPECT_EQ(end(0, false), "fine");
  EXPECT_EQ(end(1, false, "Error: failed to exec pid1: No such file or directory (catatonit)"),
            std::string(to_string(FailureKind::not_started)) +
                ": could not start: there is no program 'python' in the image img");
  EXPECT_EQ(end(0, true), "fine");
  EXPECT_EQ(end(1, false),
            std::string(to_string(FailureKind::exit_code)) + ": ended with exit code 1");
  EXPECT_EQ(end(137, true),
            std::string(to_string(FailureKind::out_of_memory)) +
                ": was killed because it used too much memory (its limit is 1 GiB)");
  EXPECT_EQ(end(137, false), std::string(to_string(FailureKind::signal)) +
                                 ": was killed by SIGKILL (exit code 137)");
  EXPECT_EQ(containers::failure_of({137, false, ""}, attempt(), "img")->hints.at(0),
            "if that was for memory (its limit is 1 GiB), the engine did not notice: raise "
            "`resources.memory`");
  EXPECT_EQ(end(1, true),
            std::string(to_string(FailureKind::exit_code)) + ": ended with exit code 1");
  EXPECT_NE(containers::failure_of({1, true, ""}, attempt(), "img")
                ->hints.at(0)
                .find("killed one of its processes for memory"),
            std::string::npos);
  EXPECT_EQ(end(255, false),
            std::string(to_string(FailureKind::exit_code)) + ": ended with exit code 255");
  EXPECT_EQ(end(127, false, "[FATAL tini (7)] exec python failed: No such file or directory"),
            std::string(to_string(FailureKind::not_started)) +
                ": could not start: there is no program 'python' in the image img");
  EXPECT_EQ(end(127, false, "it says No such file or directory itself"),
            std::string(to_string(FailureKind::exit_code)) + ": ended with exit code 127");
}

TEST_F(ContainerSpec, an_image_without_a_shell_is_reported) {
  step.command = {{Template{{"echo hello"}}}, true};
  const auto failure = containers::failure_of(
      {127, false, "[FATAL tini (7)] exec sh failed: No such file or directory"}, attempt(), "img");
  EXPECT_EQ(failure->message, "could not start: the image img has no shell (`sh`)");
  EXPECT_NE(failure->hints.at(0).find("command: [PROGRAM"), std::string::npos);
  const auto at_start = containers::start_failure(
      docker::EngineError(400,
                          "cannot start the container x: OCI runtime create failed: "
                          "exec: \"sh\": executable file not found in $PATH"),
      attempt(), "img");
  EXPECT_EQ(at_start.message, failure->message);
}

TEST_F(ContainerSpec, an_engine_without_docker_init_is_not_taken_for_an_image_without_a_shell) {
  step.command = {{Template{{"echo hello"}}}, true};
  const auto failure = containers::start_failure(
      docker::EngineError(400,
                          "cannot start the container x: exec: \"docker-init\": "
                          "executable file not found in $PATH"),
      attempt(), "img");
  EXPECT_EQ(failure.message,
            "could not start: the engine's machine has no docker-init, the first process of "
            "containers");
  EXPECT_NE(failure.hints.at(1).find("init: false"), std::string::npos);
}

TEST_F(ContainerSpec,
       a_volume_over_the_place_of_docker_init_is_not_taken_for_an_image_without_a_shell) {
  step.command = {{Template{{"echo hello"}}}, true};
  const auto failure = containers::start_failure(
      docker::EngineError(400,
                          "cannot start the container x: exec: \"/sbin/docker-init\": stat "
                          "/sbin/docker-init: no such file or directory"),
      attempt(), "img");
  EXPECT_EQ(
      failure.message,
      "could not start: its container lacks /sbin/docker-init, the first process of containers");
  EXPECT_EQ(failure.hints.size(), 1U);
}

}  // namespace
}  // namespace pipeline::orchestrators::docker_engine
