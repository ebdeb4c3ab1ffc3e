#include "engine/run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "core/diagnostic.hpp"
#include "unit/engine/run_fixture.hpp"

namespace pipeline::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

TEST_F(RunTest, an_output_that_cannot_be_kept_fails_its_step_and_is_retried) {
  pipeline.steps = {step("a")};
  pipeline.steps[0].retry->max_retries = 1;
  orchestrator.steps["a"] = [](const orchestrators::Attempt& attempt) {
    if (attempt.number > 1) return writes(attempt, "whole");
    std::filesystem::create_symlink("/etc/passwd", attempt.outputs / "out");
    return orchestrators::AttemptResult{std::nullopt, 0, "fake"};
  };
  EXPECT_EQ(run().status, RunStatus::succeeded);
  const auto retried = std::ranges::find_if(recorder.events, [](const Event& event) {
    return std::holds_alternative<event::StepRetried>(event);
  });
  ASSERT_NE(retried, recorder.events.end());
  const auto& failure = std::get<event::StepRetried>(*retried).failure;
  EXPECT_EQ(failure.kind, FailureKind::bad_output);
  EXPECT_THAT(failure.message, HasSubstr("it is a symbolic link"));
  EXPECT_EQ(artifact("run-1", "a"), "whole");
}

TEST_F(RunTest, files_behind_a_link_in_the_place_of_the_outputs_are_not_moved) {
  const auto mine = folder.path() / "mine";
  std::filesystem::create_directory(mine);
  std::ofstream(mine / "out") << "precious";
  pipeline.steps = {step("outputs"), step("both"), step("gone")};
  const auto replace = [&](const std::filesystem::path& own) {
    std::filesystem::remove_all(own);
    std::filesystem::create_directory_symlink(mine, own);
    return orchestrators::AttemptResult{std::nullopt, 0, "fake"};
  };
  orchestrator.steps["outputs"] = [&](const auto& attempt) { return replace(attempt.outputs); };
  orchestrator.steps["both"] = [&](const auto& attempt) {
    std::filesystem::create_directory(mine / "outputs");
    std::ofstream(mine / "outputs" / "out") << "precious";
    return replace(attempt.outputs.parent_path());
  };
  orchestrator.steps["gone"] = [&](const auto& attempt) {
    std::filesystem::remove_all(attempt.outputs);
    return orchestrators::AttemptResult{std::nullopt, 0, "fake"};
  };
  EXPECT_EQ(run().status, RunStatus::failed);
  EXPECT_EQ(recorder.end_of("outputs").failure->kind, FailureKind::bad_output);
  EXPECT_EQ(recorder.end_of("both").failure->kind, FailureKind::bad_output);
  EXPECT_EQ(recorder.end_of("gone").failure->kind, FailureKind::missing_output);
  EXPECT_EQ(core::read_file(mine / "out"), "precious");
  EXPECT_EQ(core::read_file(mine / "outputs" / "out"), "precious");
}

TEST_F(RunTest, step_fails_when_it_does_not_write_an_output) {
  pipeline.steps = {step("a"), step("b", {"a"})};
  orchestrator.steps["a"] = [](const orchestrators::Attempt&) {
    return orchestrators::AttemptResult{std::nullopt, 0, "fake"};
  };
  const auto summary = run();
  EXPECT_EQ(summary.status, RunStatus::failed);
  EXPECT_EQ(recorder.end_of("a").failure->kind, FailureKind::missing_output);
  EXPECT_THAT(recorder.end_of("a").failure->message, HasSubstr("did not write its output 'out'"));
  EXPECT_EQ(status_of("b"), StepStatus::skipped);
  EXPECT_EQ(recorder.end_of("b").failure->message, "needs 'a', which failed");
  EXPECT_EQ(orchestrator.started["b"], 0);
}

TEST_F(RunTest, independent_steps_go_on_after_a_failure) {
  pipeline.steps = {step("bad"), step("good"), step("after_bad", {"bad"}),
                    step("after_good", {"good"})};
  orchestrator.steps["bad"] = [](const orchestrators::Attempt&) { return fails_with(7); };
  const auto summary = run();
  EXPECT_EQ(summary.succeeded, 2u);
  EXPECT_EQ(summary.failed, 1u);
  EXPECT_EQ(summary.skipped, 1u);
}

TEST_F(RunTest, stop_on_failure_starts_nothing_further_but_lets_running_steps_end) {
  pipeline.execution_mode = ExecutionMode::stop_on_failure;
  pipeline.steps = {step("bad"), step("beside"), step("later", {"beside"})};
  orchestrator.steps["bad"] = [](const orchestrators::Attempt&) { return fails_with(1); };
  run({.jobs = 2});
  EXPECT_EQ(status_of("beside"), StepStatus::succeeded);
  EXPECT_EQ(status_of("later"), StepStatus::skipped);
  EXPECT_THAT(recorder.end_of("later").failure->message, HasSubstr("since 'bad' failed"));
}

/// Returns the content of a gathered input: each entry, then the index.
std::string listing(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files(std::filesystem::directory_iterator(folder), {});
  std::ranges::sort(files);
  std::string text;
  for (const auto& file : files)
    text += file.filename().string() + ": " +
            (is_directory(file) ? core::read_file(file / "part") : core::read_file(file)) + "\n";
  return text;
}

StepSpec instance(const std::string& of, int value) {
  auto spec = step(of + ".c-" + std::to_string(value));
  spec.instance = InstanceSpec{.of = of, .axes = {"c"}};
  spec.parameters["c"] = value;
  spec.outputs = {{"out", "model.bin"}};
  return spec;
}

StepSpec gathering(std::vector<std::string> from) {
  auto spec = step("choose");
  spec.inputs = {{"models", {}, true}};
  for (auto& name : from) spec.inputs[0].sources.push_back({std::move(name), "out"});
  return spec;
}

TEST_F(RunTest, gathered_outputs_are_one_folder_in_order_with_an_index) {
  pipeline.steps = {instance("train", 1), instance("train", 20),
                    gathering({"train.c-20", "train.c-1"})};
  std::string seen;
  std::filesystem::path entry;
  unsigned links = 0;
  orchestrator.steps["train.c-20"] = [](const orchestrators::Attempt& attempt) {
    std::filesystem::create_directory(attempt.outputs / "model.bin");
    std::ofstream(attempt.outputs / "model.bin" / "part") << "a folder";
    return orchestrators::AttemptResult{std::nullopt, 0, "fake"};
  };
  orchestrator.steps["choose"] = [&](const orchestrators::Attempt& attempt) {
    seen = listing(attempt.inputs.at(0).path);
    entry = attempt.inputs.at(0).path / "1-train.c-1.bin";
    links = static_cast<unsigned>(std::filesystem::hard_link_count(entry));
    return writes(attempt, "chosen");
  };
  EXPECT_EQ(run().status, RunStatus::succeeded);
  EXPECT_EQ(seen, R"(0-train.c-20.bin: a folder
1-train.c-1.bin: train.c-1
index.json: [
{"file":"0-train.c-20.bin","parameters":{"c":20},"step":"train.c-20"},
{"file":"1-train.c-1.bin","parameters":{"c":1},"step":"train.c-1"}
]

)");
  EXPECT_EQ(links, 2u) << "the content is linked, not copied";
  EXPECT_FALSE(std::filesystem::exists(entry)) << "the folder is removed with the attempt";
  EXPECT_EQ(artifact("run-1", "train.c-1"), "train.c-1");
}

TEST_F(RunTest, gathering_step_runs_again_when_one_of_many_has_changed) {
  pipeline.steps = {instance("train", 1), instance("train", 2),
                    gathering({"train.c-1", "train.c-2"})};
  EXPECT_EQ(run().succeeded, 3u);
  EXPECT_EQ(run().cached, 3u);
  pipeline.steps[1] = instance("train", 3);
  pipeline.steps[2] = gathering({"train.c-1", "train.c-3"});
  run();
  EXPECT_EQ(status_of("train.c-1"), StepStatus::cached);
  EXPECT_EQ(status_of("train.c-3"), StepStatus::succeeded);
  EXPECT_EQ(status_of("choose"), StepStatus::succeeded);
  pipeline.steps[2] = gathering({"train.c-3", "train.c-1"});
  run();
  EXPECT_EQ(status_of("choose"), StepStatus::succeeded) << "the order counts";
}

TEST_F(RunTest, gathering_step_is_skipped_when_one_of_many_fails) {
  pipeline.steps = {instance("train", 1), instance("train", 2),
                    gathering({"train.c-1", "train.c-2"})};
  orchestrator.steps["train.c-2"] = [](const orchestrators::Attempt&) { return fails_with(1); };
  run();
  EXPECT_EQ(status_of("train.c-1"), StepStatus::succeeded);
  EXPECT_EQ(status_of("choose"), StepStatus::skipped);
}

TEST_F(RunTest, step_option_means_all_instances_or_the_one_in_brackets) {
  pipeline.steps = {instance("train", 1), instance("train", 2), step("other")};
  run({.only_step = "train"});
  EXPECT_EQ(orchestrator.started["train.c-1"] + orchestrator.started["train.c-2"], 2);
  EXPECT_EQ(orchestrator.started["other"], 0);
  run({.use_cache = false, .only_step = "train[c=2]"});
  EXPECT_EQ(orchestrator.started["train.c-1"], 1);
  EXPECT_EQ(orchestrator.started["train.c-2"], 2);
  EXPECT_THROW(run({.only_step = "train[c=3]"}), core::InputError);
}

TEST_F(RunTest, fail_fast_stops_running_steps) {
  pipeline.execution_mode = ExecutionMode::fail_fast;
  pipeline.steps = {step("bad"), step("long")};
  orchestrator.blocking = {"long"};
  orchestrator.steps["bad"] = [](const orchestrators::Attempt&) { return fails_with(1); };
  const auto summary = run({.jobs = 2});
  EXPECT_EQ(status_of("long"), StepStatus::cancelled);
  EXPECT_EQ(summary.status, RunStatus::failed);
}

TEST_F(RunTest, fail_fast_fails_where_an_environment_cannot_be_prepared) {
  pipeline.execution_mode = ExecutionMode::fail_fast;
  orchestrator.broken_images = {"broken"};
  orchestrator.blocking = {"long"};
  for (const bool is_behind : {false, true}) {
    pipeline.steps = {step("long"), step("bad")};
    if (is_behind) pipeline.steps[1].after = {"long"};
    pipeline.steps[1].settings->docker.parent_image = "broken";
    const auto summary = run({.jobs = 2});
    EXPECT_EQ(summary.status, RunStatus::failed);
    EXPECT_TRUE(summary.build_failed);
    EXPECT_EQ(status_of("long"), StepStatus::cancelled);
    EXPECT_EQ(status_of("bad"), StepStatus::failed);
    EXPECT_EQ(recorder.end_of("bad").failure->kind, FailureKind::build);
  }
}

TEST_F(RunTest, fail_fast_does_not_stop_the_environment_of_a_final_step) {
  pipeline.execution_mode = ExecutionMode::fail_fast;
  pipeline.steps = {step("first"), step("bad"), step("tidy")};
  pipeline.steps[2].after = {"first"};
  pipeline.steps[1].retry = RetrySettings{.max_retries = 1, .delay = Duration(20)};
  orchestrator.steps["bad"] = [](const orchestrators::Attempt&) { return fails_with(1); };
  pipeline.steps[2].run_on = RunOn::always;
  pipeline.steps[2].settings->docker.parent_image = "slow";
  orchestrator.slow_images = {"slow"};
  EXPECT_EQ(run({.jobs = 2}).status, RunStatus::failed);
  EXPECT_EQ(status_of("tidy"), StepStatus::succeeded);
}

TEST_F(RunTest, step_is_retried_as_often_as_it_says) {
  pipeline.steps = {step("flaky")};
  pipeline.steps[0].retry = RetrySettings{.max_retries = 2, .delay = Duration(1), .backoff = 2.0};
  orchestrator.steps["flaky"] = [](const orchestrators::Attempt& attempt) {
    return attempt.number < 3 ? fails_with(1) : writes(attempt, "third time");
  };
  EXPECT_EQ(run().status, RunStatus::succeeded);
  EXPECT_EQ(orchestrator.started["flaky"], 3);
  EXPECT_EQ(artifact("run-1", "flaky"), "third time");
  std::vector<std::chrono::milliseconds> delays;
  for (const auto& event : recorder.events)
    if (const auto* retried = std::get_if<event::StepRetried>(&event))
      delays.push_back(retried->delay);
  EXPECT_THAT(delays, ElementsAre(std::chrono::milliseconds(1), std::chrono::milliseconds(2)));
}

orchestrators::AttemptResult runs_out_of_memory() {
  return {Failure{FailureKind::out_of_memory, "was killed", {}, {}}, 137, "fake"};
}

TEST_F(RunTest, step_killed_for_its_memory_gets_more_until_it_has_enough) {
  pipeline.steps = {step("hungry")};
  pipeline.steps[0].settings->resources.memory = 100;
  pipeline.steps[0].retry->on_oom = {.memory = 2, .max = 300};
  orchestrator.steps["hungry"] = [](const orchestrators::Attempt& attempt) {
    const auto memory = attempt.step.settings->resources.memory;
    return memory < 300U ? runs_out_of_memory() : writes(attempt, std::to_string(*memory));
  };
  EXPECT_EQ(run().status, RunStatus::succeeded);
  EXPECT_EQ(artifact("run-1", "hungry"), "300") << "the last increase is cut to `max`";
  std::vector<std::optional<std::uint64_t>> next, limits;
  for (const auto& event : recorder.events)
    if (const auto* retried = std::get_if<event::StepRetried>(&event)) {
      next.push_back(retried->memory);
      EXPECT_EQ(retried->delay.count(), 0);
    }
  for (const auto& attempt :
       store::RunStore(folder.path() / "state").attempts().list("run-1", "hungry"))
    limits.push_back(attempt.usage.memory_limit);
  EXPECT_THAT(next, ElementsAre(200U, 300U));
  EXPECT_THAT(limits, ElementsAre(100U, 200U, 300U));
}

TEST_F(RunTest, step_that_needs_more_memory_than_it_may_have_fails_with_this_reason) {
  pipeline.steps = {step("hungry")};
  pipeline.steps[0].settings->resources.memory = 100;
  pipeline.steps[0].retry->on_oom = {.max = 150};
  orchestrator.steps["hungry"] = [](const orchestrators::Attempt&) { return runs_out_of_memory(); };
  EXPECT_EQ(run().status, RunStatus::failed);
  EXPECT_EQ(orchestrator.started["hungry"], 2);
  EXPECT_THAT(recorder.end_of("hungry").failure->hints,
              testing::Contains("`retry.on_oom` gives the step at most 150 B"));
}

TEST_F(RunTest, step_without_a_limit_of_memory_has_nothing_to_raise) {
  pipeline.steps = {step("hungry")};
  pipeline.steps[0].retry->on_oom = {.max = 150};
  orchestrator.steps["hungry"] = [](const orchestrators::Attempt&) { return runs_out_of_memory(); };
  EXPECT_EQ(run().status, RunStatus::failed);
  EXPECT_EQ(orchestrator.started["hungry"], 1);
  EXPECT_THAT(recorder.end_of("hungry").failure->hints, Contains(HasSubstr("had none here")));
}

TEST_F(RunTest, retries_end_with_the_last_failure) {
  pipeline.steps = {step("flaky")};
  pipeline.steps[0].retry = RetrySettings{.max_retries = 1};
  orchestrator.steps["flaky"] = [](const orchestrators::Attempt& attempt) {
    return fails_with(static_cast<int>(attempt.number));
  };
  EXPECT_EQ(run().status, RunStatus::failed);
  EXPECT_EQ(recorder.end_of("flaky").failure->message, "exited with code 2");
  EXPECT_EQ(recorder.end_of("flaky").attempts, 2u);
}

orchestrators::AttemptResult loses_its_node() {
  return {Failure{FailureKind::infrastructure, "its node was lost", {}, {}}, std::nullopt, "fake"};
}

TEST_F(RunTest, failures_of_the_infrastructure_do_not_use_up_a_steps_retries) {
  pipeline.steps = {step("flaky")};
  pipeline.steps[0].retry = RetrySettings{.max_retries = 1};
  pipeline.steps[0].retry->max_infrastructure_retries = 1;
  orchestrator.steps["flaky"] = [](const orchestrators::Attempt& attempt) {
    return attempt.number == 1   ? fails_with(1)
           : attempt.number == 2 ? loses_its_node()
                                 : writes(attempt, "third time");
  };
  EXPECT_EQ(run().status, RunStatus::succeeded);
  EXPECT_EQ(recorder.end_of("flaky").attempts, 3u);
}

TEST_F(RunTest, failures_of_the_infrastructure_are_retried_a_limited_number_of_times) {
  pipeline.steps = {step("unlucky"), step("here")};
  pipeline.steps[0].retry->max_infrastructure_retries = 1;
  orchestrator.steps["unlucky"] =
      orchestrator.steps["here"] = [](const orchestrators::Attempt&) { return loses_its_node(); };
  EXPECT_EQ(run().status, RunStatus::failed);
  EXPECT_EQ(recorder.end_of("unlucky").attempts, 2u);
  EXPECT_EQ(recorder.end_of("here").attempts, 1u)
      << "the loss of this machine also ends the run, so its failures are not retried unasked";
}

TEST_F(RunTest, a_run_whose_images_cannot_be_made_is_not_handed_over) {
  pipeline.steps = {step("good"), step("bad")};
  pipeline.steps[1].settings->docker.parent_image = "broken";
  orchestrator.broken_images = {"broken"};
  EXPECT_THROW(prepare_detached({.run_id = "run-1", .driver = {{}, {"lab", "ml", "driver"}}}),
               core::BuildError);
  EXPECT_TRUE(store::RunStore(folder.path() / "state").runs().list().empty());
}

TEST_F(RunTest, the_orchestrators_details_of_a_failure_precede_the_last_lines_of_the_log) {
  pipeline.steps = {step("bad")};
  orchestrator.steps["bad"] = [](const orchestrators::Attempt& attempt) {
    attempt.io.log.write(Stream::out, "last line\n");
    auto result = fails_with(1);
    result.failure->details = {"FailedMount: no such claim"};
    return result;
  };
  run();
  EXPECT_THAT(recorder.end_of("bad").failure->details,
              ElementsAre("FailedMount: no such claim", "last line"));
}

TEST_F(RunTest, step_is_stopped_at_its_timeout) {
  pipeline.steps = {step("long")};
  pipeline.steps[0].timeout = Duration(20);
  orchestrator.blocking = {"long"};
  EXPECT_EQ(run().status, RunStatus::failed);
  EXPECT_EQ(recorder.end_of("long").failure->kind, FailureKind::timed_out);
  EXPECT_THAT(recorder.end_of("long").failure->message, HasSubstr("timeout of 20ms"));
}

/// The attempts wait before their commands begin, as a pod waits for a node.
TEST_F(RunTest, timeout_counts_from_the_begin_of_the_command) {
  pipeline.steps = {step("waits"), step("long")};
  FakeOrchestrator cluster("cluster", false);
  for (auto& each : pipeline.steps) {
    each.timeout = Duration(20);
    cluster.begins_after[each.name] = std::chrono::milliseconds(100);
  }
  cluster.blocking = {"long"};
  places.emplace(cluster);
  run();
  EXPECT_EQ(status_of("waits"), StepStatus::succeeded);
  EXPECT_EQ(recorder.end_of("long").failure->kind, FailureKind::timed_out);
}

TEST_F(RunTest, interrupted_run_cancels_running_and_waiting_steps) {
  pipeline.steps = {step("long"), step("next", {"long"}), step("waiting")};
  orchestrator.blocking = {"long", "waiting"};
  recorder.on_event = [&](const Event& event) {
    if (std::holds_alternative<event::StepStarted>(event)) cancel.stop(core::StopLevel::graceful);
  };
  const auto summary = run({.jobs = 1});
  EXPECT_EQ(summary.status, RunStatus::interrupted);
  EXPECT_EQ(status_of("long"), StepStatus::cancelled);
  EXPECT_EQ(status_of("next"), StepStatus::cancelled);
  EXPECT_EQ(status_of("waiting"), StepStatus::cancelled);
}

TEST_F(RunTest, failing_build_fails_its_steps_only) {
  pipeline.steps = {step("a"), step("b")};
  pipeline.steps[0].settings->docker.parent_image = "broken";
  orchestrator.broken_images = {"broken"};
  const auto summary = run();
  EXPECT_TRUE(summary.build_failed);
  EXPECT_EQ(recorder.end_of("a").failure->kind, FailureKind::build);
  EXPECT_EQ(status_of("b"), StepStatus::succeeded);
}

TEST_F(RunTest, store_that_cannot_be_written_ends_the_run) {
  pipeline.steps = {step("a")};
  orchestrator.steps["a"] = [&](const orchestrators::Attempt& attempt) {
    std::filesystem::remove_all(attempt.outputs.parent_path());  // as if the disk were gone
    return orchestrators::AttemptResult{std::nullopt, 0, "fake"};
  };
  EXPECT_EQ(run().status, RunStatus::failed);
}

TEST_F(RunTest, jobs_bounds_the_steps_at_a_time) {
  for (int i = 0; i < 20; ++i) pipeline.steps.push_back(step("s" + std::to_string(i)));
  orchestrator.waits_for = 3;
  run({.jobs = 3});
  EXPECT_EQ(orchestrator.max_at_once, 3);
}

TEST_F(RunTest, selected_step_runs_with_the_steps_that_it_needs) {
  pipeline.steps = {step("a"), step("b", {"a"}), step("c", {"b"}), step("d")};
  run({.only_step = "b"});
  EXPECT_THAT(orchestrator.order, ElementsAre("a", "b"));
  EXPECT_THROW(run({.only_step = "bb"}), core::InputError);
}

TEST_F(RunTest, failure_for_a_file_outside_of_the_code_has_the_line_to_add) {
  pipeline.steps = {step("a")};
  orchestrator.steps["a"] = [](const orchestrators::Attempt& attempt) {
    attempt.io.log.write(Stream::err, "No such file or directory: 'table.csv'\n");
    return fails_with(1);
  };
  run();
  EXPECT_THAT(recorder.end_of("a").failure->hints, ElementsAre("add table.csv to `code:`"));
  EXPECT_THAT(recorder.end_of("a").failure->details,
              ElementsAre("No such file or directory: 'table.csv'"));
}

TEST_F(RunTest, run_store_has_the_run_afterwards) {
  pipeline.steps = {step("a"), step("b", {"a"})};
  orchestrator.steps["b"] = [](const orchestrators::Attempt& attempt) {
    attempt.io.log.write(Stream::out, "hello\n");
    return fails_with(9);
  };
  run();
  store::RunStore store(folder.path() / "state");
  const auto record = store.runs().find("latest");
  ASSERT_TRUE(record);
  EXPECT_EQ(record->status, RunStatus::failed);
  const auto steps = store.runs().steps(record->id);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].status, StepStatus::succeeded);
  EXPECT_EQ(steps[1].status, StepStatus::failed);
  const auto attempts = store.attempts().list(record->id, "b");
  ASSERT_EQ(attempts.size(), 1u);
  EXPECT_EQ(attempts[0].exit_code, 9);
  EXPECT_EQ(core::read_file(store.paths().log_file(attempts[0].log)), "hello\n");
}

TEST_F(RunTest, an_attempt_that_prints_nothing_has_no_log_file) {
  pipeline.steps = {step("a")};
  run();
  store::RunStore store(folder.path() / "state");
  const auto attempts = store.attempts().list("run-1", "a");
  ASSERT_EQ(attempts.size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(store.paths().log_file(attempts[0].log)));
}

TEST_F(RunTest, a_success_is_stored_before_it_is_reported) {
  pipeline.steps = {step("a"), step("b", {"a"}), step("c")};
  std::vector<std::string> reported;
  recorder.on_event = [&](const Event& event) {
    const auto* finished = std::get_if<event::StepFinished>(&event);
    if (!finished) return;
    reported.push_back(finished->step);
    store::RunStore store(folder.path() / "state");
    const auto records = store.runs().steps("run-1");
    const auto record = std::ranges::find(records, finished->step, &store::StepRecord::name);
    EXPECT_EQ(record->status, StepStatus::succeeded);
  };
  run();
  EXPECT_THAT(reported, UnorderedElementsAre("a", "b", "c"));
}

}  // namespace
}  // namespace pipeline::engine
