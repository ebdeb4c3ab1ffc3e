/// @file
/// The requirements on every orchestrator, as one test suite: a program includes this and
/// instantiates the suite for its orchestrator.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "support/attempt_builder.hpp"
#include "support/event_recorder.hpp"
#include "support/prepare_and_run.hpp"
#include "support/run_task.hpp"

namespace pipeline::test {

/// An orchestrator under test.
struct Place {
  std::string name;
  std::function<std::unique_ptr<orchestrators::Orchestrator>(asio::io_context&,
                                                             const fs::path& root)>
      make;
  Settings settings;            ///< Settings of every step; its image must have `sh` and coreutils.
  bool root_may_write = false;  ///< A step that runs as root can write to its inputs, because the
                                ///< orchestrator has no read-only mounts.
};
inline void PrintTo(const Place& place, std::ostream* out) { *out << place.name; }

/// Returns settings for orchestrators that run containers: a small parent image.
inline Settings slim() {
  Settings settings;
  settings.docker.parent_image = "debian:bookworm-slim";
  return settings;
}

class Conformance : public testing::TestWithParam<Place> {
 protected:
  void TearDown() override { run_task(loop, orchestrator->settle()); }
  /// Runs the attempt in the image of the place's settings.
  orchestrators::AttemptResult run(AttemptBuilder& builder) {
    builder.step.settings->docker.parent_image = GetParam().settings.docker.parent_image;
    return run_task(loop, test::prepare_and_run(*orchestrator, builder, events));
  }
  static std::string message(const orchestrators::AttemptResult& result) {
    return result.failure ? result.failure->message : "";
  }

  asio::io_context loop;
  core::TemporaryFolder root;
  EventRecorder events;
  std::unique_ptr<orchestrators::Orchestrator> orchestrator = GetParam().make(loop, root.path());
};

TEST_P(Conformance, unknown_program_is_not_started_and_named) {
  AttemptBuilder step(program({"no-such-program-here", "x"}));
  auto result = run(step);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, FailureKind::not_started);
  EXPECT_NE(message(result).find("no-such-program-here"), std::string::npos) << message(result);
  EXPECT_FALSE(result.failure->hints.empty());
}

TEST_P(Conformance, exit_code_of_a_failing_step_is_reported) {
  for (int code : {1, 3, 255}) {
    AttemptBuilder step(shell("exit " + std::to_string(code)));
    auto result = run(step);
    ASSERT_TRUE(result.failure);
    EXPECT_EQ(result.failure->kind, FailureKind::exit_code);
    EXPECT_EQ(result.exit_code, code);
    EXPECT_NE(message(result).find(std::to_string(code)), std::string::npos) << message(result);
  }
}

TEST_P(Conformance, step_killed_by_a_signal_says_which) {
  AttemptBuilder step(shell("kill -SEGV $$; sleep 5"));
  auto result = run(step);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, FailureKind::signal);
  EXPECT_NE(message(result).find("SIGSEGV"), std::string::npos) << message(result);
}

TEST_P(Conformance, success_has_exit_code_zero_and_no_failure) {
  AttemptBuilder step(program({"true"}));
  auto result = run(step);
  EXPECT_FALSE(result.failure) << message(result);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_FALSE(result.image.empty());
}

TEST_P(Conformance, both_streams_arrive_whole_and_in_order) {
  AttemptBuilder step(
      shell("for i in 1 2 3 4 5; do echo out $i; echo err $i >&2; done; printf 'no end'"));
  auto result = run(step);
  EXPECT_FALSE(result.failure) << message(result);
  EXPECT_EQ(step.log.out, "out 1\nout 2\nout 3\nout 4\nout 5\nno end");
  EXPECT_EQ(step.log.err, "err 1\nerr 2\nerr 3\nerr 4\nerr 5\n");
}

TEST_P(Conformance, a_megabyte_without_a_line_end_arrives_whole) {
  AttemptBuilder step(shell("head -c 1048576 /dev/zero | tr '\\0' x"));
  auto result = run(step);
  EXPECT_FALSE(result.failure) << message(result);
  EXPECT_EQ(step.log.out.size(), 1048576u);
  EXPECT_EQ(step.log.out.find_first_not_of('x'), std::string::npos);
}

TEST_P(Conformance, standard_input_is_empty) {
  AttemptBuilder step(program({"cat"}));
  auto result = run(step);
  EXPECT_FALSE(result.failure) << message(result);
  EXPECT_EQ(step.log.out, "");
}

TEST_P(Conformance, inputs_are_read_and_outputs_are_collected) {
  AttemptBuilder step(shell(
      text("cat ") + placeholder(Template::Placeholder::input, "data") + text(" > ") +
      placeholder(Template::Placeholder::output, "copy") +
      text("; cat \"$PIPE_INPUT_DATA\" >> \"$PIPE_OUTPUT_COPY\"; basename \"$PIPE_INPUT_DATA\"")));
  step.input("data", "table.tar.gz", "1,2\n").output("copy", "copy.csv");
  auto result = run(step);
  EXPECT_FALSE(result.failure) << message(result) << step.log.err;
  EXPECT_EQ(step.written("copy.csv"), "1,2\n1,2\n");
  EXPECT_EQ(step.log.out, "data.tar.gz\n");
}

TEST_P(Conformance, outputs_belong_to_the_caller) {
  AttemptBuilder step(
      shell("mkdir -p $PIPE_OUTPUT_TREE/deep; echo x > $PIPE_OUTPUT_TREE/deep/file"));
  step.output("tree", "tree");
  auto result = run(step);
  EXPECT_FALSE(result.failure) << message(result) << step.log.err;
  EXPECT_EQ(step.written("tree/deep/file"), "x\n");
  struct stat info {};
  ASSERT_EQ(stat((step.folder.path() / "outputs/tree/deep/file").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, geteuid());
}

TEST_P(Conformance, inputs_cannot_be_written) {
  if (GetParam().root_may_write && geteuid() == 0) GTEST_SKIP() << "root writes where it likes";
  AttemptBuilder step(shell("echo changed > $PIPE_INPUT_DATA"));
  step.input("data", "data.txt", "original");
  auto result = run(step);
  EXPECT_TRUE(result.failure);
  EXPECT_EQ(core::read_file(step.inputs[0].path), "original");
}

TEST_P(Conformance, working_directory_is_the_code_and_nothing_else) {
  AttemptBuilder step(shell("find . -type f | sort; cat sub/b.txt"));
  step.code("a.txt", "A").code("sub/b.txt", "B");
  auto result = run(step);
  EXPECT_FALSE(result.failure) << message(result);
  EXPECT_EQ(step.log.out, "./a.txt\n./sub/b.txt\nB");
}

TEST_P(Conformance, a_step_cannot_change_the_code_of_others) {
  AttemptBuilder step(shell("set +e; echo more >> a.txt; rm -f a.txt; touch new; true"));
  step.code("a.txt", "A");
  run(step);
  EXPECT_EQ(core::read_file(step.folder.path() / "code/a.txt"), "A");
  EXPECT_FALSE(fs::exists(step.folder.path() / "code/new"));
}

TEST_P(Conformance, an_executable_file_of_the_code_can_be_the_command) {
  AttemptBuilder step(program({"./hello.sh", "you"}));
  step.code("hello.sh", "#!/bin/sh\necho hello $1\n");
  fs::permissions(step.folder.path() / "code/hello.sh", fs::perms(0755));
  auto result = run(step);
  EXPECT_FALSE(result.failure) << message(result);
  EXPECT_EQ(step.log.out, "hello you\n");
}

TEST_P(Conformance, variables_describe_the_attempt) {
  AttemptBuilder step(
      shell("echo $PIPE_RUN_ID $PIPE_STEP_NAME $PIPE_PIPELINE $PIPE_ATTEMPT "
            "$PIPE_PARAM_LEARNING_RATE $OWN $RUNTIME $SECRET"));
  step.number = 7;
  step.step.parameters = {{"learning-rate", 0.1}};
  step.environment = {{"OWN", "own"}};
  step.step.settings->docker.runtime_environment = {{"RUNTIME", "runtime"}};
  step.secrets = {{"SECRET", "hidden"}};
  auto result = run(step);
  EXPECT_FALSE(result.failure) << message(result);
  EXPECT_EQ(step.log.out, step.run_id + " step tests 7 0.1 own runtime hidden\n");
}

TEST_P(Conformance, callers_variables_do_not_reach_the_step) {
  setenv("PIPE_TEST_STRAY", "stray", 1);
  AttemptBuilder step(shell("echo \"[$PIPE_TEST_STRAY]\""));
  run(step);
  unsetenv("PIPE_TEST_STRAY");
  EXPECT_EQ(step.log.out, "[]\n");
}

TEST_P(Conformance, any_parameter_arrives_as_it_is) {
  const std::string nasty = "it's \"two\"\nlines;  $(touch hacked) `id` \\ * é 漢 $HOME -n";
  AttemptBuilder list(program({"printf", "%s"}));
  list.step.command.arguments.push_back(placeholder(Template::Placeholder::parameter, "p"));
  AttemptBuilder line(
      shell(text("printf %s ") + placeholder(Template::Placeholder::parameter, "p") + text(" '") +
            placeholder(Template::Placeholder::parameter, "p") + text("' \"") +
            placeholder(Template::Placeholder::parameter, "p") + text("\" \"$PIPE_PARAM_P\"")));
  for (auto* step : {&list, &line}) {
    step->step.parameters = {{"p", nasty}};
    auto result = run(*step);
    EXPECT_FALSE(result.failure) << message(result);
  }
  EXPECT_EQ(list.log.out, nasty);
  EXPECT_EQ(line.log.out, nasty + nasty + nasty + nasty);
}

TEST_P(Conformance, names_beyond_ascii_work) {
  AttemptBuilder step(shell("cat 'données/漢字 1.txt'; echo ä > \"$PIPE_OUTPUT_O\""));
  step.code("données/漢字 1.txt", "1\n").output("o", "größe ü.txt");
  auto result = run(step);
  EXPECT_FALSE(result.failure) << message(result) << step.log.err;
  EXPECT_EQ(step.log.out, "1\n");
  EXPECT_EQ(step.written("größe ü.txt"), "ä\n");
}

TEST_P(Conformance, graceful_stop_lets_the_step_clean_up) {
  AttemptBuilder step(
      shell("trap 'echo cleaned; exit 0' TERM; echo ready; while :; do sleep 0.05; done"));
  step.log.on_write = [&](const Log& log) {
    if (log.out == "ready\n") step.cancel.stop(core::StopLevel::graceful);
  };
  auto result = run(step);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, FailureKind::cancelled);
  EXPECT_EQ(step.log.out, "ready\ncleaned\n");
}

TEST_P(Conformance, graceful_stop_leaves_time_to_all_programs_of_a_step) {
  const std::string saves =
      "trap 'sleep 0.5; echo saved >&2; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
  const auto script = "sh -c \"" + saves + "\"";
  auto bash = shell(script + " | cat");
  bash.interpreter = {"bash", "-c"};
  const Command commands[] = {
      shell(script),
      shell(script + "; echo second"),
      shell(script + " | cat"),
      shell(script + " & wait"),
      shell("timeout 60 " + script),
      shell("setsid --wait " + script + "; echo second"),
      program({"sh", "-c", script + " | cat; echo second"}),
      bash,
  };
  for (const auto& command : commands) {
    AttemptBuilder step(command);
    step.log.on_write = [&](const Log&) { step.cancel.stop(core::StopLevel::graceful); };
    const auto result = run(step);
    SCOPED_TRACE(std::get<std::string>(command.arguments.back().parts[0]));
    ASSERT_TRUE(result.failure);
    EXPECT_EQ(result.failure->kind, FailureKind::cancelled);
    EXPECT_EQ(message(result), "was stopped");
    EXPECT_EQ(step.log.out, "ready\n");
    EXPECT_NE(step.log.err.find("saved\n"), std::string::npos) << step.log.err;
  }
}

TEST_P(Conformance, files_are_renamed_and_linked_between_folders) {
  AttemptBuilder step(
      shell("for at in $PIPE_OUTPUT_O $PIPE_SCRATCH/s $TMPDIR/t; do mkdir -p $at/a $at/b; "
            "echo x > $at/a/f; ln $at/a/f $at/b/l; mv -T $at/a/f $at/b/f; mv $at/a $at/b; done"));
  step.output("o", "o");
  const auto result = run(step);
  EXPECT_FALSE(result.failure) << message(result) << step.log.err;
  EXPECT_EQ(step.written("o/b/f"), "x\n");
}

TEST_P(Conformance, immediate_stop_lets_nothing_clean_up) {
  AttemptBuilder step(shell("trap 'echo cleaned' TERM; echo ready; while :; do sleep 0.05; done"));
  step.log.on_write = [&](const Log&) { step.cancel.stop(core::StopLevel::immediate); };
  auto result = run(step);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, FailureKind::cancelled);
  EXPECT_EQ(step.log.out, "ready\n");
}

TEST_P(Conformance, second_stop_ends_a_step_that_ignores_the_first) {
  AttemptBuilder step(shell("trap 'echo no' TERM; echo ready; while :; do sleep 0.05; done"));
  step.log.on_write = [&](const Log& log) {
    step.cancel.stop(log.out == "ready\n" ? core::StopLevel::graceful : core::StopLevel::immediate);
  };
  auto result = run(step);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, FailureKind::cancelled);
}

TEST_P(Conformance, an_attempt_is_not_started_after_a_stop) {
  AttemptBuilder step(shell("echo started"));
  run_task(loop, [&]() -> async::Task<> {
    co_await orchestrator->prepare(step.step, events, step.cancel);
  }());
  step.cancel.stop(core::StopLevel::graceful);
  auto result = run_task(loop, orchestrator->run(step.attempt()));
  if (result.cleanup) result.cleanup();
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, FailureKind::cancelled);
  EXPECT_EQ(step.log.out, "");
}

TEST_P(Conformance, programs_that_a_step_leaves_running_end_with_it) {
  AttemptBuilder step(shell("(sleep 1000; echo late) & echo done"));
  auto begin = std::chrono::steady_clock::now();
  auto result = run(step);
  EXPECT_FALSE(result.failure) << message(result);
  EXPECT_EQ(step.log.out, "done\n");
  EXPECT_LT(std::chrono::steady_clock::now() - begin,
            std::chrono::seconds(500));  // The program left behind would sleep for 1000.
}

TEST_P(Conformance, attempts_run_side_by_side) {
  // The first step ends only when it is stopped, after the second has begun to print.
  AttemptBuilder first(shell("trap 'exit 0' TERM; echo first; while :; do sleep 0.02; done")),
      second(shell("echo second"));
  second.step.name = "second";
  second.log.on_write = [&](const Log&) { first.cancel.stop(core::StopLevel::graceful); };
  int ended = 0;
  for (auto* step : {&first, &second}) {
    step->step.settings->docker.parent_image = GetParam().settings.docker.parent_image;
    asio::co_spawn(loop, test::prepare_and_run(*orchestrator, *step, events),
                   [&](std::exception_ptr error, orchestrators::AttemptResult) {
                     EXPECT_FALSE(error);
                     ++ended;
                   });
  }
  loop.restart();
  while (ended < 2 && loop.run_one() > 0) {
  }
  EXPECT_EQ(second.log.out, "second\n");
}

TEST_P(Conformance, environments_of_equal_settings_are_equal) {
  AttemptBuilder one(program({"true"})), two(program({"true"}));
  two.step.name = "other";
  for (auto* step : {&one, &two})
    step->step.settings->docker.parent_image = GetParam().settings.docker.parent_image;
  auto first = run_task(loop, orchestrator->prepare(one.step, events, one.cancel));
  auto second = run_task(loop, orchestrator->environment(two.step));
  EXPECT_FALSE(first.id.empty());
  EXPECT_EQ(first.id, second.id);
  EXPECT_TRUE(first.ready);
  EXPECT_TRUE(second.ready);
  if (first.fingerprint.empty()) return;
  EXPECT_TRUE(run_task(loop, orchestrator->matches(first.fingerprint)));
}

}  // namespace pipeline::test
