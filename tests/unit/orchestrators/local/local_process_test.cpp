#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "orchestrators/local/limits.hpp"
#include "orchestrators/local/local_orchestrator.hpp"
#include "orchestrators/processes/workspace.hpp"
#include "support/attempt_builder.hpp"
#include "support/event_recorder.hpp"
#include "support/run_task.hpp"
#include "support/sanitizers.hpp"

namespace pipeline::test {
using namespace orchestrators;
using namespace orchestrators::local;
using namespace orchestrators::processes;
namespace {

using testing::Contains;
using testing::HasSubstr;

class Local : public testing::Test {
 protected:
  AttemptResult run(AttemptBuilder& step) {
    return run_task(loop, orchestrator->run(step.attempt()));
  }

  asio::io_context loop;
  core::TemporaryFolder root;
  std::unique_ptr<Orchestrator> orchestrator = make_local_orchestrator(loop, {.root = root.path()});
};

/// Returns whether the process has not ended after a minute. A zombie has ended, and so has a
/// process that disappears between two looks at it.
bool stays_alive(pid_t pid) {
  for (int i = 0; i < 6000; ++i) {
    std::string stat;
    if (!std::getline(std::ifstream("/proc/" + std::to_string(pid) + "/stat"), stat)) return false;
    if (stat.find(") Z") != stat.npos) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

/// Returns whether the file shares its bytes on disk, as a link or as a clone.
bool is_shared(const fs::path& file) {
  if (fs::hard_link_count(file) > 1) return true;
  core::Descriptor source(open(file.c_str(), O_RDONLY | O_CLOEXEC)),
      target(open((file.string() + ".probe").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  return ioctl(target.get(), FICLONE, source.get()) == 0;
}

TEST_F(Local, large_file_of_the_code_is_not_copied) {
  AttemptBuilder step(shell("test -e large.bin"));
  step.code("large.bin", std::string(17 << 20, 'x')).code("small.bin", "x");
  const auto code = step.attempt().code;
  for (const char* name : {"large.bin", "small.bin"}) fs::permissions(code / name, fs::perms(0444));
  ShortFolders short_folders;
  Workspace workspace(step.attempt(), short_folders);
  EXPECT_TRUE(is_shared(fs::path(workspace.layout().code) / "large.bin"));
  EXPECT_EQ(fs::hard_link_count(fs::path(workspace.layout().code) / "small.bin"), 1u);
}

TEST_F(Local, misspelt_program_is_reported_with_the_similar_one) {
  core::TemporaryFolder bin;
  write(bin.path() / "frobnicate", "#!/bin/sh\n");
  fs::permissions(bin.path() / "frobnicate", fs::perms(0755));
  AttemptBuilder step(program({"frobnicat"}));
  step.step.settings->docker.runtime_environment = {{"PATH", bin.path().string()}};
  auto result = run(step);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->message, "there is no program 'frobnicat' on PATH");
  EXPECT_THAT(result.failure->hints, Contains(HasSubstr("did you mean 'frobnicate'?")));
}

TEST_F(Local, file_of_the_code_that_is_not_executable_is_reported) {
  AttemptBuilder step(program({"./train.py"}));
  step.code("train.py", "print(1)\n");
  auto result = run(step);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, FailureKind::not_started);
  EXPECT_THAT(result.failure->message, HasSubstr("cannot be executed"));
  EXPECT_THAT(result.failure->hints, Contains(HasSubstr("chmod +x")));
}

TEST_F(Local, folder_of_the_code_cannot_be_executed_whatever_its_permissions) {
  AttemptBuilder step(program({"./train"}));
  step.code("train/__main__.py", "print(1)\n");
  const auto result = run(step);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, FailureKind::not_started);
  EXPECT_THAT(result.failure->message, HasSubstr("it is a folder"));
  EXPECT_THAT(result.failure->hints, testing::Not(Contains(HasSubstr("chmod"))));
  EXPECT_THAT(result.failure->hints, Contains(HasSubstr("[python, ./train]")));
}

TEST_F(Local, file_of_the_code_without_its_folder_is_reported) {
  AttemptBuilder step(program({"train.sh"}));
  step.code("train.sh", "echo\n");
  auto result = run(step);
  ASSERT_TRUE(result.failure);
  EXPECT_THAT(result.failure->hints, Contains(HasSubstr("./train.sh")));
}

TEST_F(Local, missing_interpreter_of_a_script_is_reported) {
  if (test::under_tsan) GTEST_SKIP() << test::vfork_is_fork;
  AttemptBuilder step(program({"./train.py"}));
  step.code("train.py", "#!/no/such/python\n");
  fs::permissions(step.folder.path() / "code/train.py", fs::perms(0755));
  auto result = run(step);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, FailureKind::not_started);
  EXPECT_THAT(result.failure->hints, Contains(HasSubstr("interpreter")));
}

TEST_F(Local, script_without_interpreter_line_is_run_by_the_shell) {
  AttemptBuilder step(program({"./run", "x"}));
  step.code("run", "echo \"$1\"\n");
  fs::permissions(step.folder.path() / "code/run", fs::perms(0755));
  EXPECT_FALSE(run(step).failure);
  EXPECT_EQ(step.log.out, "x\n");
}

TEST_F(Local, log_that_cannot_be_written_ends_the_attempt) {
  AttemptBuilder step(shell("echo line; sleep 1000"));
  step.log.on_write = [](const Log&) { throw core::EnvironmentError("the disk is full"); };
  auto result = run(step);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, FailureKind::environment);
  EXPECT_EQ(result.failure->message, "the disk is full");
}

TEST_F(Local, code_that_cannot_be_read_is_an_error_of_the_environment) {
  AttemptBuilder step(program({"true"}));
  fs::remove(step.folder.path() / "code");
  auto result = run(step);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, FailureKind::environment);
}

TEST_F(Local, process_that_left_the_group_ends_with_the_attempt) {
  AttemptBuilder step(
      shell("setsid sh -c 'echo $$ > $PIPE_OUTPUT_PID; exec sleep 1000' & while [ ! -s "
            "$PIPE_OUTPUT_PID ]; do sleep 0.01; done"));
  step.output("pid", "pid");
  EXPECT_FALSE(run(step).failure);
  EXPECT_FALSE(stays_alive(std::stoi(step.written("pid"))));
}

// A daemon as in books: its own session, no descriptors of the step, its environment cleared, its
// parent gone.
constexpr auto daemonize =
    "setsid sh -c 'env -i /bin/sh -c \"echo \\$\\$ > $PIPE_OUTPUT_PID.new; mv $PIPE_OUTPUT_PID.new "
    "$PIPE_OUTPUT_PID; exec sleep 1000\" "
    "</dev/null >/dev/null 2>&1 &' </dev/null >/dev/null 2>&1 & while [ ! -s $PIPE_OUTPUT_PID ]; "
    "do sleep 0.01; done";

TEST_F(Local, daemon_ends_with_the_attempt) {
  AttemptBuilder step(shell(daemonize));
  step.output("pid", "pid");
  EXPECT_FALSE(run(step).failure);
  // Before the attempt's outputs are looked at, not some time later.
  EXPECT_EQ(kill(std::stoi(step.written("pid")), 0), -1);
}

TEST_F(Local, daemon_of_another_step_is_left_alone_while_that_step_runs) {
  AttemptBuilder daemon(shell(std::string(daemonize) +
                              "; echo ready; while [ ! -e $PIPE_OUTPUT_GO ]; do sleep 0.01; "
                              "done; kill -0 $(cat $PIPE_OUTPUT_PID)"));
  daemon.output("pid", "pid");
  daemon.output("go", "go");
  std::optional<AttemptResult> result;
  const auto long_attempt = daemon.attempt();
  asio::co_spawn(loop, orchestrator->run(long_attempt),
                 [&](std::exception_ptr, AttemptResult ended) { result = std::move(ended); });
  while (daemon.log.out != "ready\n" && loop.run_one() > 0) {
  }
  AttemptBuilder other(shell("sleep 0.01 & true"));
  bool other_ended = false;
  const auto short_attempt = other.attempt();
  asio::co_spawn(loop, orchestrator->run(short_attempt),
                 [&](std::exception_ptr, AttemptResult) { other_ended = true; });
  while (!other_ended && loop.run_one() > 0) {
  }
  write(daemon.folder.path() / "outputs/go", "");
  while (!result && loop.run_one() > 0) {
  }
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->failure);
}

TEST_F(Local, killed_driver_leaves_no_daemon) {
  AttemptBuilder step(
      shell(std::string(daemonize) + "; kill -9 $(cut -d' ' -f4 /proc/$PPID/stat); wait"));
  step.output("pid", "pid");
  const pid_t driver = fork();
  if (driver == 0) {
    asio::io_context own_loop;
    auto own = make_local_orchestrator(own_loop, {.root = root.path()});
    run_task(own_loop, own->run(step.attempt()));
    _exit(0);
  }
  int status = 0;
  waitpid(driver, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_FALSE(stays_alive(std::stoi(step.written("pid"))));
}

TEST_F(Local, step_that_kills_its_reaper_fails_and_the_next_one_runs) {
  AttemptBuilder step(shell("kill -9 $PPID; sleep 1000"));
  const auto result = run(step);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, FailureKind::environment);
  AttemptBuilder next(shell("echo fine"));
  EXPECT_FALSE(run(next).failure);
  EXPECT_EQ(next.log.out, "fine\n");
}

TEST_F(Local, process_in_the_background_ends_with_the_attempt) {
  AttemptBuilder step(shell("sleep 1000 >/dev/null 2>&1 & echo $! > $PIPE_OUTPUT_PID"));
  step.output("pid", "pid");
  EXPECT_FALSE(run(step).failure);
  EXPECT_FALSE(stays_alive(std::stoi(step.written("pid"))));
}

TEST_F(Local, killed_driver_leaves_no_process) {
  AttemptBuilder step(
      shell("sleep 1000 & echo $$ $! > $PIPE_OUTPUT_PIDS.new; mv $PIPE_OUTPUT_PIDS.new "
            "$PIPE_OUTPUT_PIDS; wait"));
  step.output("pids", "pids");
  pid_t driver = fork();
  if (driver == 0) {
    asio::io_context own_loop;
    auto own = make_local_orchestrator(own_loop, {.root = root.path()});
    run_task(own_loop, own->run(step.attempt()));
    _exit(0);
  }
  auto pids = step.folder.path() / "outputs/pids";
  for (int i = 0; i < 6000 && !fs::exists(pids); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_TRUE(fs::exists(pids));
  kill(driver, SIGKILL);
  waitpid(driver, nullptr, 0);
  std::ifstream in(pids);
  for (pid_t pid; in >> pid;) EXPECT_FALSE(stays_alive(pid)) << pid;
}

TEST_F(Local, driver_killed_while_it_starts_a_step_leaves_no_process) {
  for (int round = 0; round < 20; ++round) {
    AttemptBuilder step(
        shell("sleep 1000 & echo $! > $PIPE_OUTPUT_PID; kill -9 $(cut -d' ' -f4 /proc/$PPID/stat); "
              "wait"));
    step.output("pid", "pid");
    const pid_t driver = fork();
    if (driver == 0) {
      asio::io_context own_loop;
      auto own = make_local_orchestrator(own_loop, {.root = root.path()});
      run_task(own_loop, own->run(step.attempt()));
      _exit(0);
    }
    int status = 0;
    waitpid(driver, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    const auto pid = std::stoi(step.written("pid"));
    ASSERT_FALSE(stays_alive(pid)) << pid << " in round " << round;
  }
}

TEST_F(Local, a_run_waits_for_the_processes_of_a_dead_driver) {
  AttemptBuilder step(
      shell("sleep 1000 & echo $! $PPID > $PIPE_OUTPUT_PIDS.new; "
            "mv $PIPE_OUTPUT_PIDS.new $PIPE_OUTPUT_PIDS; wait"));
  step.output("pids", "pids");
  const auto state = root.path() / "state";
  const pid_t driver = fork();
  if (driver == 0) {
    asio::io_context own_loop;
    auto own =
        make_local_orchestrator(own_loop, {.root = root.path(), .state = state, .run_id = "dead"});
    run_task(own_loop, own->run(step.attempt()));
    _exit(0);
  }
  const auto pids = step.folder.path() / "outputs/pids";
  for (int i = 0; i < 6000 && !fs::exists(pids); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  pid_t process = 0, reaper = 0;
  ASSERT_TRUE(std::ifstream(pids) >> process >> reaper);
  ASSERT_EQ(kill(reaper, SIGSTOP), 0);  // as on a busy machine, where its turn comes late
  kill(driver, SIGKILL);
  waitpid(driver, nullptr, 0);
  ASSERT_EQ(kill(process, 0), 0);
  std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    kill(reaper, SIGCONT);
  });
  auto next =
      make_local_orchestrator(loop, {.root = root.path(), .state = state, .run_id = "next"});
  run_task(loop, next->remove_orphans([](const std::string& run) { return run != "dead"; }));
  EXPECT_NE(kill(process, 0), 0);
  EXPECT_FALSE(fs::exists(state / "reapers" / "dead"));
}

TEST_F(Local, a_resumed_run_does_not_wait_for_its_own_reaper_at_its_end) {
  AttemptBuilder step(shell("true"));
  const auto state = root.path() / "state";
  auto own = make_local_orchestrator(loop, {.root = root.path(), .state = state, .run_id = "own"});
  run_task(loop, own->run(step.attempt()));
  ASSERT_TRUE(fs::exists(state / "reapers" / "own"));
  const std::function<bool(const std::string&)> is_alive = [](const std::string&) { return false; };
  std::size_t turns = 0;
  bool has_ended = false;
  loop.restart();
  asio::co_spawn(loop, own->remove_orphans(is_alive),
                 [&](std::exception_ptr) { has_ended = true; });
  while (!has_ended && loop.run_one() > 0) ++turns;
  EXPECT_LT(turns, 100u) << "each look at the lock is a turn";
}

TEST_F(Local, a_coroutine_given_up_leaves_no_process) {
  AttemptBuilder step(shell("echo $$ > $PIPE_OUTPUT_PID; echo ready; exec sleep 1000"));
  step.output("pid", "pid");
  auto own_loop = std::make_unique<asio::io_context>();
  auto own = make_local_orchestrator(*own_loop, {.root = root.path()});
  auto attempt = step.attempt();
  asio::co_spawn(*own_loop, own->run(attempt), asio::detached);
  while (step.log.out != "ready\n" && own_loop->run_one() > 0) {
  }
  own_loop.reset();
  EXPECT_FALSE(stays_alive(std::stoi(step.written("pid"))));
}

TEST_F(Local, a_loop_may_end_while_memory_is_sampled) {
  AttemptBuilder step(shell("sleep 1000 & sleep 1000 & sleep 1000 & sleep 1000"));
  auto attempt = step.attempt();
  for (int i = 0; i < 150; ++i) {
    auto own_loop = std::make_unique<asio::io_context>();
    auto own = make_local_orchestrator(*own_loop, {.root = root.path()});
    asio::co_spawn(*own_loop, own->run(attempt), asio::detached);
    // Samples begin some milliseconds after the process.
    own_loop->run_for(std::chrono::milliseconds(4) + std::chrono::microseconds(100 * i));
    own_loop.reset();
  }
}

TEST_F(Local, step_over_its_memory_limit_fails_with_this_reason) {
  if (!orchestrator->capabilities().memory_limits)
    GTEST_SKIP() << "this machine has no usable control groups";
  AttemptBuilder step(shell("head -c 200000000 /dev/zero | tail | wc -c"));
  step.step.settings->resources.memory = 32 << 20;
  auto result = run(step);
  ASSERT_TRUE(result.failure || step.log.out != "200000000\n");
  AttemptBuilder direct(program({"tail", "/dev/zero"}));
  direct.step.settings->resources.memory = 32 << 20;
  result = run(direct);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, FailureKind::out_of_memory);
  EXPECT_EQ(result.failure->message,
            "was killed because it used too much memory (its limit is 32 MiB)");
}

TEST_F(Local, step_within_its_limits_succeeds_and_its_group_is_removed) {
  auto groups = find_control_groups();
  if (groups.memory.empty()) GTEST_SKIP() << "this machine has no usable control groups";
  AttemptBuilder step(program({"true"}));
  step.step.settings->resources.memory = 64 << 20;
  step.step.settings->resources.cpu_count = 0.5;
  EXPECT_FALSE(run(step).failure);
  EXPECT_FALSE(fs::exists(groups.memory / ("pipe-" + step.run_id + "-step-1")));
}

TEST_F(Local, control_groups_are_found_where_the_parent_hands_the_controllers_down) {
  core::TemporaryFolder tree;
  write(tree.path() / "cgroup", "0::/user.slice/app.slice/shell.scope\n");
  write(tree.path() / "fs/user.slice/app.slice/shell.scope/cgroup.procs", "");
  write(tree.path() / "fs/user.slice/app.slice/shell.scope/cgroup.subtree_control", "");
  write(tree.path() / "fs/user.slice/app.slice/cgroup.procs", "");
  write(tree.path() / "fs/user.slice/app.slice/cgroup.subtree_control", "memory pids");
  auto found = find_control_groups(tree.path() / "cgroup", tree.path() / "fs");
  EXPECT_TRUE(found.unified);
  EXPECT_EQ(found.memory, tree.path() / "fs/user.slice/app.slice");
  EXPECT_TRUE(found.cpu.empty());
  EXPECT_TRUE(find_control_groups(tree.path() / "none", tree.path() / "fs").memory.empty());
}

TEST_F(Local, python_can_be_called_where_there_is_only_python3) {
  core::TemporaryFolder bin;
  // Not a pyenv's shim, which looks for its name's like.
  auto python3 = find_program("python3", "/usr/bin:" + std::string(getenv("PATH")));
  fs::create_symlink(python3, bin.path() / "python3");
  for (auto* name : {"sh", "env", "bash"})
    if (auto found = find_program(name, getenv("PATH")); !found.empty())
      fs::create_symlink(found, bin.path() / name);
  AttemptBuilder step(program({"python", "-c", "print(6 * 7)"}));
  step.environment = {{"PATH", bin.path().string()}};
  auto result = run(step);
  EXPECT_FALSE(result.failure) << step.log.err;
  EXPECT_EQ(step.log.out, "42\n");
}

TEST_F(Local,
       temporary_files_have_a_short_path_and_are_removed_and_their_folder_with_the_orchestrator) {
  AttemptBuilder step(shell("printf %s $TMPDIR; touch $TMPDIR/file"));
  EXPECT_FALSE(run(step).failure);
  EXPECT_LE(step.log.out.size(), 75u);
  std::string deep(100, 'd');
  AttemptBuilder other(shell("printf %s $TMPDIR; touch $TMPDIR/file"));
  fs::create_directories(other.folder.path() / deep / "scratch");
  auto attempt = other.attempt();
  attempt.scratch = other.folder.path() / deep / "scratch";
  EXPECT_FALSE(run_task(loop, orchestrator->run(attempt)).failure);
  EXPECT_LE(other.log.out.size(), 75u);
  EXPECT_FALSE(fs::exists(fs::path(other.log.out) / "file"));
  const auto first = std::exchange(other.log.out, {});
  EXPECT_FALSE(run_task(loop, orchestrator->run(attempt)).failure);
  EXPECT_EQ(other.log.out, first) << "an empty folder serves again";
  orchestrator.reset();
  EXPECT_FALSE(fs::exists(first));
}

TEST_F(Local, settings_without_effect_on_a_process_are_reported) {
  StepSpec step;
  step.name = "step";
  step.command = program({"true"});
  step.settings->docker.parent_image = "python:3.11";
  step.settings->docker.apt_packages = {"git"};
  step.settings->docker.apt_snapshot = "2026-11-01";
  step.settings->docker.user = "nobody";
  auto notices = run_task(loop, orchestrator->environment(step)).notices;
  for (auto* name : {"`parent_image`", "`apt_packages`", "`apt_snapshot`", "`user`"})
    EXPECT_THAT(notices, Contains(HasSubstr(name)));
  EXPECT_EQ(notices.size(), 4u);
}

TEST_F(Local, another_program_of_the_same_name_is_another_environment) {
  core::TemporaryFolder one, two;
  for (auto* bin : {&one, &two}) {
    write(bin->path() / "tool", "#!/bin/sh\n");
    fs::permissions(bin->path() / "tool", fs::perms(0755));
  }
  StepSpec step;
  step.name = "step";
  step.command = program({"tool"});
  step.environment["PATH"] = one.path().string();
  auto first = run_task(loop, orchestrator->environment(step));
  step.environment["PATH"] = two.path().string();
  auto second = run_task(loop, orchestrator->environment(step));
  EXPECT_NE(first.id, second.id);

  auto later = make_local_orchestrator(loop, {.root = root.path()});
  EXPECT_TRUE(run_task(loop, later->matches(first.fingerprint)));
  write(one.path() / "tool", "#!/bin/sh\necho other\n");
  later = make_local_orchestrator(loop, {.root = root.path()});
  EXPECT_FALSE(run_task(loop, later->matches(first.fingerprint)));
  EXPECT_TRUE(run_task(loop, later->matches(second.fingerprint)));
}

TEST_F(Local, variables_of_the_settings_are_a_part_of_the_environment) {
  StepSpec step;
  step.name = "step";
  step.command = program({"true"});
  std::set<std::string> ids{run_task(loop, orchestrator->environment(step)).id};
  for (auto* variables :
       {&step.settings->docker.environment, &step.settings->docker.runtime_environment})
    for (auto* value : {"1", "2"}) {
      (*variables)["MODE"] = value;
      ids.insert(run_task(loop, orchestrator->environment(step)).id);
    }
  EXPECT_EQ(ids.size(), 5u);
}

TEST(programs_of, programs_that_the_shell_executes_are_found) {
  EXPECT_EQ(programs_of(program({"python", "x.py"})), std::vector<std::string>{"python"});
  EXPECT_EQ(programs_of(program({"./run.sh"})), std::vector<std::string>{});
  EXPECT_EQ(programs_of(shell("cd a && A=1 python x.py | tee log; exec ./b.sh")),
            (std::vector<std::string>{"python", "tee"}));
  EXPECT_EQ(programs_of(shell("if grep x y; then Rscript z; fi")),
            (std::vector<std::string>{"grep", "Rscript"}));
  EXPECT_EQ(programs_of(shell(placeholder(Template::Placeholder::parameter, "tool") + text(" x"))),
            std::vector<std::string>{});
}

TEST(python_of_image, version_is_read_from_dockers_python) {
  EXPECT_EQ(python_of_image("python:3.11-slim-bookworm"), "3.11");
  EXPECT_EQ(python_of_image("registry:5000/library/python:3.12.4"), "3.12");
  EXPECT_EQ(python_of_image("python:latest"), std::nullopt);
  EXPECT_EQ(python_of_image("python:3"), std::nullopt);
  EXPECT_EQ(python_of_image("debian:bookworm-slim"), std::nullopt);
  EXPECT_EQ(python_of_image("mypython:3.11"), std::nullopt);
}

TEST_F(Local, memory_of_a_large_driver_does_not_count_for_a_small_step) {
  const std::string large(256 << 20, 'x');
  AttemptBuilder step(program({"true"}));
  const auto used = run(step).usage.peak_memory;
  EXPECT_EQ(large.back(), 'x');
  EXPECT_LT(used.value_or(0), 8u << 20);
}

}  // namespace
}  // namespace pipeline::test
