// Files of a step on an engine that does not see this machine's files: they are copied to the
// container and back, whatever its settings, and nothing of them is left on the engine.
#include <sys/stat.h>
#include <unistd.h>

#include <random>

#include <gtest/gtest.h>

#include "docker/engine_api.hpp"
#include "orchestrators/docker/container_spec.hpp"
#include "orchestrators/docker/docker_orchestrator.hpp"
#include "orchestrators/docker/file_copy.hpp"
#include "support/attempt_builder.hpp"
#include "support/event_recorder.hpp"
#include "support/prepare_and_run.hpp"
#include "support/run_task.hpp"
#include "support/second_engine.hpp"

namespace pipeline::test {
namespace {

class RemoteFiles : public testing::Test {
 protected:
  void SetUp() override {
    if (second_engine().empty())
      GTEST_SKIP() << "there is no second engine: scripts/testbed/second-engine start starts one";
    use_second_engine_over_tls();
    engine = std::make_unique<docker::EngineApi>(loop, docker::find_endpoint());
    orchestrator = orchestrators::make_docker_orchestrator(
        loop, {.root = root.path(), .state = root.path() / ".pipe", .run_id = "remote-files"});
  }
  /// Returns how many containers of this step's run the engine still has.
  std::size_t left(const AttemptBuilder& step) {
    const auto containers = run_task(loop, engine->list_containers({"pipe.run=" + step.run_id}));
    return containers.size();
  }
  static AttemptBuilder& on_debian(AttemptBuilder& step) {
    step.step.settings->docker.parent_image = "debian:bookworm-slim";
    step.step.settings->docker.skip_build = true;
    return step;
  }
  orchestrators::AttemptResult run(AttemptBuilder& step) {
    auto result = run_task(loop, test::prepare_and_run(*orchestrator, on_debian(step), events));
    EXPECT_EQ(left(step), 0U);
    return result;
  }
  bool volume_exists(const std::string& name) {
    try {
      run_task(loop, engine->call("GET", "/volumes/" + name));
      return true;
    } catch (const docker::EngineError& error) {
      EXPECT_EQ(error.status(), 404);
      return false;
    }
  }

  asio::io_context loop;
  core::TemporaryFolder root;
  EventRecorder events;
  std::unique_ptr<docker::EngineApi> engine;
  std::unique_ptr<orchestrators::Orchestrator> orchestrator;
};

TEST_F(RemoteFiles, nothing_of_this_machine_can_be_mounted_there) {
  nlohmann::json body;
  body["Image"] = "debian:bookworm-slim";
  body["HostConfig"]["Mounts"] = nlohmann::json::array();
  body["HostConfig"]["Mounts"].push_back(
      {{"Type", "bind"}, {"Source", root.path().string()}, {"Target", "/x"}});
  AttemptBuilder step(program({"true"}));
  try {
    run_task(loop, engine->create_container("pipe-never-made", body));
    FAIL() << "the second engine sees " << root.path()
           << ": it does not stand in for one on another machine";
  } catch (const docker::EngineError& error) {
    EXPECT_NE(std::string(error.what()).find("bind source path does not exist"), std::string::npos)
        << error.what();
    EXPECT_FALSE(orchestrators::docker_engine::is_elsewhere(error, step.attempt()))
        << "only a missing folder of the attempt shows that the engine is on another machine";
  }
}

TEST_F(RemoteFiles, folders_links_modes_and_odd_names_arrive_both_ways) {
  const std::string long_name(200, 'n');
  AttemptBuilder step(
      shell("test -x bin/tool && cat \"$PIPE_INPUT_TREE/deep/ü 1\" && cd \"$PIPE_OUTPUT_TREE\" && "
            "mkdir -p empty sub/" +
            long_name + " && echo x > sub/" + long_name + "/" + long_name +
            " && ln -s sub up && echo run > exe && chmod 750 exe && ln exe same && chmod 0 exe && "
            "umask 077 && echo y > private"));
  step.code("bin/tool", "#!/bin/sh\n").output("tree", "tree");
  fs::permissions(step.folder.path() / "code/bin/tool", fs::perms(0555));
  write(step.folder.path() / "artifacts/tree/deep/ü 1", "umlaut\n");
  step.inputs.push_back({"tree", "tree", step.folder.path() / "artifacts/tree"});
  step.step.command.arguments[0] =
      text("mkdir -p $PIPE_OUTPUT_TREE; ") + step.step.command.arguments[0];
  const auto result = run(step);
  ASSERT_FALSE(result.failure) << result.failure->message << step.log.err;
  EXPECT_EQ(step.log.out, "umlaut\n");
  const auto tree = step.folder.path() / "outputs/tree";
  EXPECT_TRUE(fs::is_directory(tree / "empty"));
  EXPECT_EQ(core::read_file(tree / "sub" / long_name / long_name), "x\n");
  EXPECT_EQ(fs::read_symlink(tree / "up"), "sub");
  EXPECT_EQ(core::read_file(tree / "private"), "y\n");
  EXPECT_EQ(core::read_file(tree / "same"), "run\n") << "a hard link";
  struct stat info {};
  ASSERT_EQ(stat((tree / "exe").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, geteuid());
}

TEST_F(RemoteFiles, a_hundred_megabytes_come_back_whole) {
  AttemptBuilder step(shell("head -c 104857600 /dev/zero | tr '\\0' x > $PIPE_OUTPUT_BIG"));
  step.output("big", "big");
  const auto result = run(step);
  ASSERT_FALSE(result.failure) << result.failure->message;
  EXPECT_EQ(fs::file_size(step.folder.path() / "outputs/big"), 104857600U);
  EXPECT_EQ(step.written("big").find_first_not_of('x'), std::string::npos);
}

TEST_F(RemoteFiles, any_user_and_a_read_only_root_can_write_outputs_and_home) {
  for (const char* user : {"nobody", "4321:4321", "0:0"}) {
    AttemptBuilder step(
        shell("id -u; echo x > $HOME/f && cat $PIPE_INPUT_DATA > $PIPE_OUTPUT_COPY; echo y "
              "2>/dev/null > /elsewhere || echo read-only"));
    step.input("data", "data.txt", "d").output("copy", "copy");
    step.step.settings->docker.user = user;
    step.step.settings->docker.run_args["read_only"] = true;
    const auto result = run(step);
    ASSERT_FALSE(result.failure) << user << result.failure->message << step.log.err;
    EXPECT_EQ(step.written("copy"), "d") << user;
    EXPECT_NE(step.log.out.find("read-only"), std::string::npos);
  }
}

TEST_F(RemoteFiles, a_fifo_among_the_outputs_is_refused_by_name) {
  AttemptBuilder step(shell("mkfifo $PIPE_OUTPUT_PIPE"));
  step.output("pipe", "pipe");
  try {
    run(step);
    FAIL();
  } catch (const core::EnvironmentError& error) {
    EXPECT_NE(std::string(error.what()).find("'outputs/pipe' is neither"), std::string::npos)
        << error.what();
  }
  EXPECT_EQ(left(step), 0U);
}

TEST_F(RemoteFiles, a_step_that_removes_its_outputs_folder_has_written_nothing) {
  AttemptBuilder step(shell("rm -r /pipe/outputs"));
  step.step.settings->docker.user = "0:0";
  EXPECT_FALSE(run(step).failure);
  EXPECT_TRUE(fs::is_empty(step.folder.path() / "outputs"));
}

TEST_F(RemoteFiles, the_volume_is_removed_with_its_container) {
  AttemptBuilder step(shell("grep ' /pipe ' /proc/self/mountinfo"));
  const auto result = run(step);
  ASSERT_FALSE(result.failure) << result.failure->message;
  const auto begin = step.log.out.find("/volumes/");
  ASSERT_NE(begin, std::string::npos) << step.log.out;
  const auto name = step.log.out.substr(begin + 9, 64);  // A volume's folder has its name.
  EXPECT_FALSE(volume_exists(name)) << name;
}

TEST_F(RemoteFiles, an_engine_behind_a_local_socket_that_sees_nothing_of_this_machine_is_noticed) {
  unsetenv("DOCKER_TLS_VERIFY");
  setenv("DOCKER_HOST", ("unix://" + second_engine().at("SOCKET")).c_str(), 1);
  if (access(second_engine().at("SOCKET").c_str(), W_OK) != 0)
    GTEST_SKIP() << "only root may use this socket";
  orchestrator = orchestrators::make_docker_orchestrator(
      loop, {.root = root.path(), .state = root.path() / ".pipe", .run_id = "remote-files"});
  AttemptBuilder step(shell("cat a.txt > $PIPE_OUTPUT_COPY"));
  step.code("a.txt", "A").output("copy", "copy");
  const auto result = run(step);
  ASSERT_FALSE(result.failure) << result.failure->message;
  EXPECT_EQ(step.written("copy"), "A");
}

TEST_F(RemoteFiles, the_container_that_a_dead_driver_left_is_joined_and_its_outputs_are_fetched) {
  AttemptBuilder step(shell("echo before; sleep 1; echo after; echo made > $PIPE_OUTPUT_X"));
  step.output("x", "x");
  on_debian(step);
  std::string owner;
  {  // The container of a first attempt has the label pipe.state, which the next one needs.
    AttemptBuilder probe(program({"sleep", "60"}));
    probe.run_id = step.run_id;
    probe.step.name = "probe";
    on_debian(probe);
    std::exception_ptr failure;
    asio::co_spawn(
        loop, test::prepare_and_run(*orchestrator, probe, events),
        [&](std::exception_ptr error, orchestrators::AttemptResult) { failure = error; });
    asio::co_spawn(
        loop,
        [&]() -> async::Task<> {
          const std::vector<std::string> labels{"pipe.run=" + step.run_id};
          while (owner.empty()) {
            const auto found = co_await engine->list_containers(labels);
            if (!found.empty()) owner = found[0]["Labels"]["pipe.state"].get<std::string>();
          }
          probe.cancel.stop(core::StopLevel::immediate);
        },
        asio::detached);
    loop.restart();
    loop.run();
    if (failure) std::rethrow_exception(failure);
  }
  const auto attempt = step.attempt();
  orchestrators::docker_engine::ContainerOptions place{.image = "debian:bookworm-slim",
                                                       .root = root.path(),
                                                       .home = "/",
                                                       .user = "0:0",
                                                       .owner = owner,
                                                       .elsewhere = true};
  const auto id = run_task(
      loop, engine->create_container(orchestrators::docker_engine::container_name(attempt),
                                     orchestrators::docker_engine::container_body(attempt, place)));
  run_task(loop, [&]() -> async::Task<> {
    co_await orchestrators::docker_engine::copy_in(*engine, attempt, id);
    co_await engine->start_container(id);
  }());
  const auto result = run(step);
  ASSERT_FALSE(result.failure) << result.failure->message;
  EXPECT_EQ(step.log.out, "before\nafter\n");
  EXPECT_EQ(step.written("x"), "made\n");
}

}  // namespace
}  // namespace pipeline::test
