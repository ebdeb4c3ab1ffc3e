// Containers of steps on a real engine: their failures, that nothing they print is lost, and that
// no container is left.
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <random>

#include <gtest/gtest.h>

#include "async/joinable_task.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"
#include "docker/engine_api.hpp"
#include "orchestrators/docker/container_spec.hpp"
#include "orchestrators/docker/docker_orchestrator.hpp"
#include "orchestrators/removals.hpp"
#include "support/event_recorder.hpp"
#include "support/podman.hpp"

namespace pipeline {
namespace {

namespace fs = std::filesystem;

class Kept : public orchestrators::LogSink {
 public:
  void write(Stream stream, std::string_view bytes) override {
    (stream == Stream::err ? err : out) += bytes;
    if (on_write) on_write();
  }
  std::string out, err;
  std::function<void()> on_write;
};

/// A step with its folders, its log and its cancellation.
struct AttemptOptions {
  AttemptOptions(const fs::path& root, const std::string& name) : folder(root / name) {
    step.name = name;
    step.settings->docker.parent_image = "debian:bookworm-slim";
    step.settings->docker.skip_build = true;
    step.settings->docker.network = "none";
    for (const char* part : {"code", "outputs", "scratch"}) core::make_folders(folder / part);
  }
  void shell(const std::string& line) { step.command = {{Template{{line}}}, true}; }
  void list(const std::vector<std::string>& arguments) {
    step.command = {};
    for (const auto& argument : arguments) step.command.arguments.push_back(Template{{argument}});
  }
  fs::path folder;
  StepSpec step;
  StringMap secrets;
  std::vector<orchestrators::AttemptInput> inputs;
  std::vector<orchestrators::AttemptOutput> outputs;
  unsigned number = 1;
  Kept log;
  core::CancelSource cancel;
};

class DockerOrchestrator : public testing::Test {
 protected:
  DockerOrchestrator() {
    orchestrators::OrchestratorOptions options;
    options.root = folder_.path();
    options.state = folder_.path();
    options.run_id = run_id_;
    orchestrator_ = orchestrators::make_docker_orchestrator(loop_, options);
  }
  ~DockerOrchestrator() override { EXPECT_EQ(left(), 0U) << "containers are left"; }

  orchestrators::Attempt attempt(AttemptOptions& a) {
    return {{.step = a.step,
             .pipeline = "test",
             .run_id = run_id_,
             .number = a.number,
             .code = a.folder / "code",
             .inputs = a.inputs,
             .outputs = a.folder / "outputs",
             .output_names = a.outputs,
             .scratch = a.folder / "scratch",
             .environment = {},
             .secrets = a.secrets},
            {.log = a.log, .cancel = a.cancel}};
  }
  async::Task<> run_one(AttemptOptions& a, orchestrators::AttemptResult& result) {
    test::Silent events;
    co_await orchestrator_->prepare(a.step, events, a.cancel);
    const auto one = attempt(a);
    result = co_await orchestrator_->run(one);
  }
  orchestrators::AttemptResult run(AttemptOptions& a) {
    orchestrators::AttemptResult result;
    await(run_one(a, result));
    return result;
  }
  void await(async::Task<> task) {
    std::exception_ptr failure;
    asio::co_spawn(loop_, std::move(task), [&](std::exception_ptr error) { failure = error; });
    loop_.restart();
    loop_.run();
    if (failure) std::rethrow_exception(failure);
  }
  std::vector<nlohmann::json> containers() {
    std::vector<nlohmann::json> found;
    await([](docker::EngineApi& engine, std::string run,
             std::vector<nlohmann::json>& result) -> async::Task<> {
      std::vector<std::string> labels;
      labels.push_back("pipe.run=" + run);
      result = co_await engine.list_containers(std::move(labels));
    }(engine_, run_id_, found));
    return found;
  }
  std::size_t left() { return containers().size(); }
  std::string make_container(const std::string& name, nlohmann::json body, bool start) {
    std::string id;
    await([](docker::EngineApi& engine, std::string container, nlohmann::json description,
             bool running, std::string& result) -> async::Task<> {
      result = co_await engine.create_container(container, description);
      if (running) co_await engine.start_container(result);
    }(engine_, name, std::move(body), start, id));
    return id;
  }
  orchestrators::docker_engine::ContainerOptions place() {
    return {.image = "debian:bookworm-slim",
            .root = folder_.path(),
            .home = "/",
            .user = "0:0",
            .owner = owner()};
  }
  /// Returns the label pipe.state of this orchestrator's containers, from one that it starts.
  std::string owner() {
    if (!owner_.empty()) return owner_;
    AttemptOptions probe(folder_.path(), "owner");
    probe.list({"sleep", "600"});
    asio::steady_timer poll(loop_);
    orchestrators::AttemptResult result;
    await([](DockerOrchestrator& self, AttemptOptions& a,
             orchestrators::AttemptResult& ended) -> async::Task<> {
      async::JoinableTask running(co_await asio::this_coro::executor, self.run_one(a, ended));
      while (self.owner_.empty() && !running.done()) {
        std::vector<std::string> labels;
        labels.push_back("pipe.run=" + self.run_id_);
        const auto found = co_await self.engine_.list_containers(std::move(labels));
        if (!found.empty()) self.owner_ = found[0]["Labels"]["pipe.state"].get<std::string>();
      }
      a.cancel.stop(core::StopLevel::immediate);
      co_await running.join();
    }(*this, probe, result));
    return owner_;
  }

  core::TemporaryFolder folder_;
  std::string run_id_ = core::make_run_id(std::chrono::duration_cast<std::chrono::milliseconds>(
                                              std::chrono::system_clock::now().time_since_epoch())
                                              .count(),
                                          std::random_device{}());
  asio::io_context loop_;
  docker::EngineApi engine_{loop_, docker::find_endpoint()};
  std::unique_ptr<orchestrators::Orchestrator> orchestrator_;
  std::string owner_;
};

TEST_F(DockerOrchestrator, a_failure_by_an_exit_code_differs_from_one_by_a_signal) {
  AttemptOptions a(folder_.path(), "code");
  a.shell("echo out; echo err >&2; exit 3");
  const auto result = run(a);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, FailureKind::exit_code);
  EXPECT_EQ(result.failure->message, "ended with exit code 3");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(a.log.out, "out\n");
  EXPECT_EQ(a.log.err, "err\n");
  AttemptOptions b(folder_.path(), "killed");
  b.shell("kill -SEGV $$");
  const auto killed = run(b);
  EXPECT_EQ(killed.failure->kind, FailureKind::signal);
  EXPECT_EQ(killed.failure->message, "was killed by SIGSEGV (exit code 139)");
}

TEST_F(DockerOrchestrator, a_program_that_is_missing_or_not_executable_is_named) {
  AttemptOptions a(folder_.path(), "missing");
  a.list({"no-such-program", "x"});
  auto result = run(a);
  EXPECT_EQ(result.failure->kind, FailureKind::not_started);
  EXPECT_EQ(
      result.failure->message,
      "could not start: there is no program 'no-such-program' in the image debian:bookworm-slim");
  a.number = 2;
  // Without pipe's init process, the engine itself reports the missing program.
  a.step.settings->docker.run_args["init"] = false;
  result = run(a);
  EXPECT_EQ(
      result.failure->message,
      "could not start: there is no program 'no-such-program' in the image debian:bookworm-slim");
  AttemptOptions b(folder_.path(), "plain");
  core::write_file_atomically(b.folder / "code" / "run", "text");
  chmod((b.folder / "code" / "run").c_str(), 0644);
  b.list({"/pipe/code/run"});
  result = run(b);
  EXPECT_EQ(result.failure->kind, FailureKind::not_started);
  EXPECT_EQ(
      result.failure->message,
      "could not start: '/pipe/code/run' is not executable in the image debian:bookworm-slim");
  AttemptOptions c(folder_.path(), "shell");
  c.shell("no-such-program");
  result = run(c);
  EXPECT_EQ(result.failure->kind, FailureKind::exit_code);
  ASSERT_EQ(result.failure->hints.size(), 1U);
  EXPECT_NE(result.failure->hints[0].find("command not found"), std::string::npos);
}

TEST_F(DockerOrchestrator, refusals_of_the_engine_are_explained) {
  AttemptOptions a(folder_.path(), "network");
  a.list({"true"});
  a.step.settings->docker.network = "no-such-network-" + run_id_;
  auto result = run(a);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, FailureKind::not_started);
  EXPECT_NE(result.failure->message.find("not found"), std::string::npos)
      << result.failure->message;
  AttemptOptions b(folder_.path(), "cpus");
  b.list({"true"});
  b.step.settings->resources.cpu_count = 100000;
  result = run(b);
  if (test::is_podman()) {
    EXPECT_FALSE(result.failure) << "Podman takes it";
  } else {
    ASSERT_TRUE(result.failure);
    EXPECT_EQ(result.failure->kind, FailureKind::not_started);
    ASSERT_EQ(result.failure->hints.size(), 1U) << result.failure->message;
    EXPECT_NE(result.failure->hints[0].find("cpu_count"), std::string::npos);
  }
  AttemptOptions c(folder_.path(), "volume");
  c.list({"true"});
  c.step.settings->docker.volumes = {"/no/such/folder:/data"};
  result = run(c);
  ASSERT_TRUE(result.failure);
  EXPECT_NE(result.failure->message.find("/no/such/folder"), std::string::npos)
      << result.failure->message;
}

TEST_F(DockerOrchestrator, failure_for_lack_of_memory_names_the_limit) {
  AttemptOptions a(folder_.path(), "oom");
  a.step.settings->docker.parent_image = "python:3.11-slim-bookworm";
  a.step.settings->resources.memory = 32ULL << 20;
  a.list({"python3", "-c",
          "open('/pipe/outputs/began', 'w').close(); b = bytearray(512 << 20); b[::4096] = b'x' * "
          "len(b[::4096]); print('it fits')"});
  const auto result = run(a);
  ASSERT_TRUE(result.failure) << "this engine enforces no memory limits: see `docker info`";
  EXPECT_EQ(result.failure->kind, FailureKind::out_of_memory) << result.failure->message;
  EXPECT_NE(result.failure->message.find("its limit is 32 MiB"), std::string::npos)
      << result.failure->message;
  EXPECT_TRUE(fs::exists(a.folder / "outputs" / "began"));
}

TEST_F(DockerOrchestrator, a_log_that_cannot_be_written_ends_the_step) {
  AttemptOptions a(folder_.path(), "full");
  a.shell("while true; do echo line; sleep 0.01; done");
  a.log.on_write = [] { throw core::EnvironmentError("the disk is full"); };
  EXPECT_THROW(run(a), core::EnvironmentError);
}

TEST_F(DockerOrchestrator, stopping_gracefully_lets_the_step_end_itself) {
  AttemptOptions a(folder_.path(), "graceful");
  a.shell("trap 'echo bye; exit 0' TERM; echo ready; while true; do sleep 0.05; done");
  a.log.on_write = [&] { a.cancel.stop(core::StopLevel::graceful); };
  const auto result = run(a);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, FailureKind::cancelled);
  EXPECT_EQ(a.log.out, "ready\nbye\n");
}

TEST_F(DockerOrchestrator, stopping_at_once_overtakes_a_graceful_stop) {
  AttemptOptions a(folder_.path(), "stubborn");
  a.shell("trap '' TERM; echo ready; while true; do sleep 0.05; done");
  asio::steady_timer second(loop_);
  std::chrono::steady_clock::time_point stopped;
  a.log.on_write = [&] {
    a.cancel.stop(core::StopLevel::graceful);
    second.expires_after(std::chrono::milliseconds(300));
    second.async_wait([&](boost::system::error_code) {
      stopped = std::chrono::steady_clock::now();
      a.cancel.stop(core::StopLevel::immediate);
    });
  };
  const auto result = run(a);
  EXPECT_EQ(result.failure->kind, FailureKind::cancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - stopped, std::chrono::seconds(9))
      << "the stop waited for the whole grace period";
}

TEST_F(DockerOrchestrator, an_attempt_that_is_cancelled_before_it_starts_makes_no_container) {
  AttemptOptions a(folder_.path(), "early");
  a.list({"true"});
  test::Silent events;
  await([](orchestrators::Orchestrator& orchestrator, AttemptOptions& one,
           EventSink& sink) -> async::Task<> {
    co_await orchestrator.prepare(one.step, sink, one.cancel);
  }(*orchestrator_, a, events));
  a.cancel.stop(core::StopLevel::graceful);
  orchestrators::AttemptResult result;
  const auto one = attempt(a);
  await([](orchestrators::Orchestrator& orchestrator, const orchestrators::Attempt& cancelled,
           orchestrators::AttemptResult& ended) -> async::Task<> {
    ended = co_await orchestrator.run(cancelled);
  }(*orchestrator_, one, result));
  EXPECT_EQ(result.failure->kind, FailureKind::cancelled);
}

TEST_F(DockerOrchestrator, a_step_sees_its_files_and_writes_its_outputs_as_the_caller) {
  AttemptOptions a(folder_.path(), "files");
  core::write_file_atomically(a.folder / "code" / "hello.txt", "code");
  core::write_file_atomically(folder_.path() / "artifact", "input");
  core::make_folders(folder_.path() / "shared");
  core::write_file_atomically(folder_.path() / "shared" / "s", "volume");
  a.inputs.push_back({"data", "table.csv", folder_.path() / "artifact"});
  a.outputs.push_back({"model", "model.bin"});
  a.secrets["TOKEN"] = "hush";
  a.step.settings->docker.volumes = {"./shared:/shared:ro"};
  a.shell(
      "pwd; cat hello.txt /pipe/inputs/data.csv /shared/s; echo; echo $TOKEN $HOME; touch $HOME/x; "
      "cat /pipe/inputs/data.csv > "
      "\"$PIPE_OUTPUT_MODEL\"; mkdir "
      "/pipe/outputs/d; (echo x > hello.txt) 2>/dev/null || echo read-only; (echo x > "
      "/pipe/inputs/data.csv) 2>/dev/null || echo read-only; (echo x "
      "> /shared/s) "
      "2>/dev/null || echo read-only");
  const auto result = run(a);
  EXPECT_FALSE(result.failure) << result.failure->message;
  EXPECT_TRUE(result.image.starts_with("sha256:"));
  EXPECT_EQ(a.log.out,
            "/pipe/code\ncodeinputvolume\nhush /pipe/scratch\nread-only\nread-only\nread-only\n");
  EXPECT_EQ(core::read_file(a.folder / "outputs" / "model.bin"), "input");
  for (const char* name : {"model.bin", "d"}) {
    struct stat info {};
    ASSERT_EQ(stat((a.folder / "outputs" / name).c_str(), &info), 0);
    EXPECT_EQ(info.st_uid, geteuid());
    EXPECT_EQ(info.st_gid, getegid());
  }
}

TEST_F(DockerOrchestrator, a_step_with_another_user_can_write_its_outputs) {
  AttemptOptions a(folder_.path(), "user");
  a.step.settings->docker.user = "nobody";
  a.shell("id -un; echo x > /pipe/outputs/f && echo x > $HOME/f");
  const auto result = run(a);
  EXPECT_FALSE(result.failure) << result.failure->message;
  EXPECT_EQ(a.log.out, "nobody\n");
}

TEST_F(DockerOrchestrator, a_hundred_thousand_lines_of_a_quick_step_all_arrive) {
  AttemptOptions a(folder_.path(), "lines");
  a.shell("seq 100000; echo last >&2");
  const auto result = run(a);
  EXPECT_FALSE(result.failure) << result.failure->message;
  std::string expected;
  for (int i = 1; i <= 100000; ++i) expected += std::to_string(i) + "\n";
  EXPECT_TRUE(a.log.out == expected) << a.log.out.size() << " of " << expected.size();
  EXPECT_EQ(a.log.err, "last\n");
}

TEST_F(DockerOrchestrator, logs_and_exit_codes_of_twenty_steps_at_once_do_not_mix) {
  std::vector<std::unique_ptr<AttemptOptions>> tries;
  std::vector<orchestrators::AttemptResult> results(20);
  std::exception_ptr failure;
  for (int i = 0; i < 20; ++i) {
    auto& a = *tries.emplace_back(
        std::make_unique<AttemptOptions>(folder_.path(), "many-" + std::to_string(i)));
    a.shell("echo $PIPE_STEP_NAME; exit " + std::to_string(i % 3));
    asio::co_spawn(loop_, run_one(a, results[static_cast<std::size_t>(i)]),
                   [&](std::exception_ptr error) {
                     if (error) failure = error;
                   });
  }
  loop_.run();
  if (failure) std::rethrow_exception(failure);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(results[static_cast<std::size_t>(i)].exit_code, i % 3);
    EXPECT_EQ(tries[static_cast<std::size_t>(i)]->log.out, "many-" + std::to_string(i) + "\n");
  }
}

TEST_F(DockerOrchestrator, settle_waits_for_all_removals_also_if_others_begin_meanwhile) {
  std::vector<std::string> ids;
  const nlohmann::json body{
      {"Image", "debian:bookworm-slim"}, {"Cmd", {"true"}}, {"Labels", {{"pipe.run", run_id_}}}};
  for (const auto* name : {"a", "b", "c", "d"})
    ids.push_back(make_container("pipe-" + run_id_ + "-" + name, body, false));
  const auto executor = loop_.get_executor();
  orchestrators::Removals removals;
  for (std::size_t i = 0; i < 2; ++i) removals.begin(executor, engine_.remove_container(ids[i]));
  int settled = 0;
  for (std::size_t i = 2; i < 4; ++i)
    asio::co_spawn(
        loop_,
        [&, i]() -> async::Task<> {
          co_await removals.settle();
          ++settled;
          removals.begin(executor, engine_.remove_container(ids[i]));
          co_await removals.settle();
          ++settled;
        },
        [](std::exception_ptr error) { EXPECT_FALSE(error); });
  loop_.restart();
  loop_.run();
  EXPECT_EQ(settled, 4);
  EXPECT_EQ(left(), 0U);
}

TEST_F(DockerOrchestrator, a_container_of_another_program_with_the_name_is_left_alone) {
  AttemptOptions a(folder_.path(), "taken");
  a.list({"true"});
  nlohmann::json body;
  body["Image"] = "debian:bookworm-slim";
  body["Cmd"] = nlohmann::json::array({"true"});
  const auto id =
      make_container(orchestrators::docker_engine::container_name(attempt(a)), body, false);
  EXPECT_THROW(
      try { run(a); } catch (const core::EnvironmentError& error) {
        EXPECT_NE(std::string(error.what()).find("it is not this step's"), std::string::npos);
        throw;
      },
      core::EnvironmentError);
  await(engine_.remove_container(id));
}

TEST_F(DockerOrchestrator, the_container_that_a_dead_driver_left_is_joined_and_its_log_is_whole) {
  const auto its_place = place();
  for (const char* line : {"echo before; sleep 1; echo after; exit 4",
                           "echo before; echo after; exit 4"}) {  // still running; ended already
    AttemptOptions a(folder_.path(), line[13] == 's' ? "running" : "ended");
    a.shell(line);
    const auto id =
        make_container(orchestrators::docker_engine::container_name(attempt(a)),
                       orchestrators::docker_engine::container_body(attempt(a), its_place), true);
    const auto result = run(a);
    EXPECT_EQ(result.exit_code, 4);
    EXPECT_EQ(a.log.out, "before\nafter\n");
  }
}

TEST_F(DockerOrchestrator, a_container_that_was_made_but_never_started_is_replaced) {
  const auto its_place = place();
  AttemptOptions a(folder_.path(), "made");
  a.shell("echo once");
  make_container(orchestrators::docker_engine::container_name(attempt(a)),
                 orchestrators::docker_engine::container_body(attempt(a), its_place), false);
  EXPECT_FALSE(run(a).failure);
  EXPECT_EQ(a.log.out, "once\n");
}

TEST_F(DockerOrchestrator, orphans_of_dead_runs_are_removed_and_of_live_ones_kept) {
  const auto its_place = place();
  AttemptOptions a(folder_.path(), "orphan");
  a.list({"sleep", "600"});
  make_container(orchestrators::docker_engine::container_name(attempt(a)),
                 orchestrators::docker_engine::container_body(attempt(a), its_place), true);
  auto other = its_place;
  other.owner = "somebody-else";
  a.number = 2;
  const auto foreign =
      make_container(orchestrators::docker_engine::container_name(attempt(a)),
                     orchestrators::docker_engine::container_body(attempt(a), other), false);
  const std::function<bool(const std::string&)> all = [](const std::string&) { return true; };
  const std::function<bool(const std::string&)> none = [](const std::string&) { return false; };
  await(orchestrator_->remove_orphans(all));
  EXPECT_EQ(left(), 2U);
  await(orchestrator_->remove_orphans(none));
  EXPECT_EQ(left(), 1U);
  await(engine_.remove_container(foreign));
}

TEST_F(DockerOrchestrator, an_environment_changes_with_its_settings_and_matches_its_fingerprint) {
  AttemptOptions a(folder_.path(), "environment");
  a.list({"true"});
  orchestrators::Environment first, second, third;
  bool same = false, other = true;
  await([](orchestrators::Orchestrator& orchestrator, AttemptOptions& one,
           orchestrators::Environment& x, orchestrators::Environment& y,
           orchestrators::Environment& z, bool& unchanged, bool& changed) -> async::Task<> {
    x = co_await orchestrator.environment(one.step);
    one.step.settings->docker.labels["note"] = "no part of it";
    y = co_await orchestrator.environment(one.step);
    one.step.settings->docker.runtime_environment["A"] = "1";
    z = co_await orchestrator.environment(one.step);
    unchanged = co_await orchestrator.matches(x.fingerprint);
    changed = co_await orchestrator.matches(R"({"debian:bookworm-slim": "sha256:0"})");
  }(*orchestrator_, a, first, second, third, same, other));
  EXPECT_TRUE(first.ready);
  EXPECT_EQ(first.description, "debian:bookworm-slim");
  EXPECT_EQ(first.id, second.id);
  EXPECT_NE(first.id, third.id);
  EXPECT_TRUE(same) << first.fingerprint;
  EXPECT_FALSE(other);
}

}  // namespace
}  // namespace pipeline
