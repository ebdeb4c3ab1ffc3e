#include <fcntl.h>
#include <sys/file.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "engine/run/retries.hpp"
#include "unit/engine/run_fixture.hpp"

namespace pipeline::engine {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RunPolicies : public RunTest {
 protected:
  StepFunction fails_until(unsigned last, orchestrators::AttemptResult with) {
    return [last, with](const orchestrators::Attempt& attempt) {
      return attempt.number < last ? with : writes(attempt, "made");
    };
  }
  StepFunction prints_and_fails(std::string line) {
    return [line](const orchestrators::Attempt& attempt) {
      attempt.io.log.write(Stream::out, line + "\n" + std::string(100, '\n'));
      return fails_with(1);
    };
  }
  /// Steps `of-1`, `of-2`, ..., as a matrix makes them.
  void add_instances(const std::string& of, unsigned number) {
    for (unsigned i = 1; i <= number; ++i) {
      auto made = engine::step(of + "-" + std::to_string(i));
      made.instance = InstanceSpec{.of = of, .axes = {"n"}};
      made.parameters["n"] = Json(i);
      pipeline.steps.push_back(std::move(made));
    }
  }
  StepSpec gathers(const std::string& of, unsigned number, std::optional<unsigned> at_least) {
    auto made = engine::step("best");
    InputSpec input{.name = "all", .gathered = true, .at_least = at_least};
    for (unsigned i = 1; i <= number; ++i)
      input.sources.push_back({of + "-" + std::to_string(i), "out"});
    made.inputs = {input};
    return made;
  }
};

TEST_F(RunPolicies, only_failures_that_retry_on_names_are_retried) {
  orchestrators::AttemptResult killed{Failure{FailureKind::signal, "was killed by SIGKILL", {}, {}},
                                      std::nullopt, "fake"};
  killed.signal = 9;
  const orchestrators::AttemptResult late{
      Failure{FailureKind::timed_out, "ran longer than its timeout", {}, {}}, 137, "fake"};
  pipeline.steps = {engine::step("exit"), engine::step("other"), engine::step("signal"),
                    engine::step("late"), engine::step("text")};
  for (auto& each : pipeline.steps)
    each.retry =
        RetrySettings{.max_retries = 2, .on = {"exit 75", "signal 9", "timeout", "CUDA error"}};
  orchestrator.steps = {{"exit", fails_until(3, fails_with(75))},
                        {"other", fails_until(2, fails_with(1))},
                        {"signal", fails_until(2, killed)},
                        {"late", fails_until(2, late)},
                        {"text", prints_and_fails("RuntimeError: CUDA error: unknown")}};
  EXPECT_EQ(run().status, RunStatus::failed);
  EXPECT_EQ(orchestrator.started["exit"], 3);
  EXPECT_EQ(orchestrator.started["other"], 1);
  EXPECT_EQ(orchestrator.started["signal"], 2);
  EXPECT_EQ(orchestrator.started["late"], 2);
  EXPECT_EQ(orchestrator.started["text"], 3) << "the text stands far before the log's end";
}

TEST_F(RunPolicies, never_wins_over_all_other_retries) {
  const orchestrators::AttemptResult lost{
      Failure{FailureKind::infrastructure, "its node was lost", {}, {}}, std::nullopt, "fake"};
  pipeline.steps = {engine::step("two"), engine::step("lost")};
  for (auto& each : pipeline.steps)
    each.retry = RetrySettings{
        .max_retries = 2, .never = {"exit 2", "infrastructure"}, .max_infrastructure_retries = 5};
  orchestrator.steps = {{"two", fails_until(9, fails_with(2))}, {"lost", fails_until(9, lost)}};
  EXPECT_EQ(run().status, RunStatus::failed);
  EXPECT_EQ(orchestrator.started["two"], 1);
  EXPECT_EQ(orchestrator.started["lost"], 1);
}

TEST(Retries, of_a_text_look_for_it_anywhere_in_a_log_of_any_length) {
  const core::TemporaryFolder folder;
  const auto log = folder.path() / "log";
  const Failure failure{FailureKind::exit_code, "exited with code 1", {}, {}};
  const orchestrators::AttemptResult result{failure, 1, "fake"};
  const FailedAttempt failed{failure, result, std::nullopt, log};
  EXPECT_FALSE(is_named(failed, {"CUDA error"})) << "the attempt has no log";
  for (const std::size_t before :
       {std::size_t{0}, (std::size_t{1} << 20) - 4, std::size_t{3} << 20}) {
    core::write_file_atomically(
        log, std::string(before, 'x') + "CUDA error" + std::string(2 << 20, 'y'));
    EXPECT_TRUE(is_named(failed, {"CUDA error"})) << before;
    EXPECT_FALSE(is_named(failed, {"CUDA errors"})) << before;
  }
}

TEST(Retries, of_attempts_that_a_queue_has_preempted_are_not_counted) {
  const Failure failure{FailureKind::infrastructure, "Kueue has evicted it"};
  orchestrators::AttemptResult result;
  result.was_preempted = true;
  const FailedAttempt failed{failure, result, {}, {}};
  const RetrySettings once{.max_infrastructure_retries = 1};
  Retries retries(once, 0);
  AttemptCounts counts;
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(retries.retry_after(failed, counts).has_value());
  EXPECT_EQ(counts.interruptions, 0u);
  const RetrySettings never{.max_infrastructure_retries = 0};
  EXPECT_FALSE(Retries(never, 3).retry_after(failed, counts).has_value());
  result.was_preempted = false;
  EXPECT_TRUE(retries.retry_after(failed, counts).has_value());
  EXPECT_FALSE(retries.retry_after(failed, counts).has_value());
}

TEST_F(RunPolicies, a_retry_avoids_the_nodes_of_failed_attempts) {
  pipeline.steps = {engine::step("flaky")};
  pipeline.steps[0].retry = RetrySettings{.max_retries = 2, .avoid_failed = true};
  std::vector<std::vector<std::string>> avoided;
  orchestrator.steps["flaky"] = [&](const orchestrators::Attempt& attempt) {
    avoided.push_back(attempt.avoided_nodes);
    auto result = fails_with(1);
    result.node = "node-" + std::to_string(attempt.number);
    return result;
  };
  EXPECT_EQ(run().status, RunStatus::failed);
  EXPECT_THAT(avoided,
              ElementsAre(IsEmpty(), ElementsAre("node-1"), ElementsAre("node-1", "node-2")));
}

TEST_F(RunPolicies, an_allowed_failure_lets_the_run_succeed) {
  pipeline.steps = {engine::step("lint"), engine::step("report", {}, {"lint"}),
                    engine::step("fixed", {"lint"}), engine::step("alarm", {}, {"lint"})};
  pipeline.steps[0].allow_failure = true;
  pipeline.steps[3].run_on = RunOn::failure;
  pipeline.execution_mode = ExecutionMode::fail_fast;
  orchestrator.steps["lint"] = fails_until(9, fails_with(1));
  const auto end = run();
  EXPECT_EQ(end.status, RunStatus::succeeded);
  EXPECT_EQ(end.failed, 1u);
  EXPECT_EQ(status_of("lint"), StepStatus::failed);
  EXPECT_EQ(status_of("report"), StepStatus::succeeded);
  EXPECT_EQ(status_of("fixed"), StepStatus::skipped)
      << "the output that the step takes does not exist";
  EXPECT_EQ(status_of("alarm"), StepStatus::skipped)
      << "only a step with an allowed failure has failed";
}

TEST_F(RunPolicies, successful_instances_are_gathered_and_the_others_are_listed) {
  add_instances("train", 3);
  pipeline.steps.push_back(gathers("train", 3, 2));
  orchestrator.steps["train-2"] = fails_until(9, fails_with(1));
  std::string index;
  std::set<std::string> files;
  orchestrator.steps["best"] = [&](const orchestrators::Attempt& attempt) {
    index = core::read_file(attempt.inputs.at(0).path / "index.json");
    for (const auto& entry : std::filesystem::directory_iterator(attempt.inputs[0].path))
      files.insert(entry.path().filename());
    return writes(attempt, "best");
  };
  EXPECT_EQ(run().status, RunStatus::failed) << "train-2 failed, and was not allowed to";
  EXPECT_EQ(status_of("best"), StepStatus::succeeded);
  EXPECT_THAT(files, ElementsAre("0-train-1", "2-train-3", "index.json"));
  EXPECT_THAT(index, HasSubstr(R"({"file":null,"parameters":{"n":2},"step":"train-2"})"));
  EXPECT_EQ(run({.resume = false}).cached, 3u) << "the same is missing again";
  orchestrator.steps.erase("train-2");
  EXPECT_EQ(run().status, RunStatus::succeeded);
  EXPECT_EQ(status_of("best"), StepStatus::succeeded) << "the step's input has changed";
}

TEST_F(RunPolicies, too_few_to_gather_fail_the_step) {
  add_instances("train", 3);
  for (auto& each : pipeline.steps) each.allow_failure = true;
  pipeline.steps.push_back(gathers("train", 3, 2));
  orchestrator.steps["train-1"] = orchestrator.steps["train-2"] = fails_until(9, fails_with(1));
  EXPECT_EQ(run().status, RunStatus::failed);
  EXPECT_THAT(recorder.end_of("best").failure->message, HasSubstr("only 1 of the 3 outputs"));
  pipeline.steps.back().inputs[0].at_least.reset();
  EXPECT_EQ(run().status, RunStatus::succeeded) << "without `at_least`, the step is skipped";
  EXPECT_EQ(status_of("best"), StepStatus::skipped);
}

TEST_F(RunPolicies, instances_run_as_many_at_a_time_as_the_step_permits) {
  add_instances("train", 6);
  for (auto& each : pipeline.steps) each.max_parallel = 2;
  orchestrator.waits_for = 2;
  EXPECT_EQ(run({.jobs = 6}).status, RunStatus::succeeded);
  EXPECT_EQ(orchestrator.max_at_once, 2);
}

TEST_F(RunPolicies, a_result_is_reused_until_it_is_too_old) {
  pipeline.steps = {engine::step("fresh"), engine::step("stale"), engine::step("day")};
  pipeline.steps[0].cache_max_age = Duration(std::chrono::hours(1));
  pipeline.steps[1].cache_max_age = Duration(1);
  pipeline.steps[2].cache_until = "monday";
  EXPECT_EQ(run().succeeded, 3u);
  ::usleep(5000);
  EXPECT_EQ(run().cached, 2u);
  EXPECT_EQ(status_of("stale"), StepStatus::succeeded);
  pipeline.steps[2].cache_until = "tuesday";
  run();
  EXPECT_EQ(status_of("day"), StepStatus::succeeded);
}

TEST_F(RunPolicies, outputs_are_copied_to_the_folder_again_when_they_are_gone) {
  const auto results = folder.path() / "results";
  pipeline.steps = {engine::step("train")};
  pipeline.steps[0].publish_to = results;
  EXPECT_EQ(run().status, RunStatus::succeeded);
  EXPECT_EQ(core::read_file(results / "out"), "train");
  std::filesystem::remove(results / "out");
  EXPECT_EQ(run().cached, 1u);
  EXPECT_EQ(core::read_file(results / "out"), "train");
  std::filesystem::remove(results / "out");
  core::make_folders(results / "out");
  const auto end = run();
  EXPECT_EQ(end.status, RunStatus::succeeded)
      << "the step has published to this path before, and may replace the folder";
  pipeline.steps[0].publish_to = results / "other";
  core::make_folders(results / "other" / "out");
  EXPECT_EQ(run().status, RunStatus::failed) << "a folder that no run has published is left alone";
}

TEST_F(RunPolicies, copies_that_killed_drivers_left_unfinished_are_removed) {
  const auto results = folder.path() / "results";
  for (const auto* name : {".pipe-publish-dead", ".pipe-publish-live", "own"}) {
    core::make_folders(results / name);
    core::write_file_atomically(results / name / "out", "half");
  }
  const core::Descriptor live(
      ::open((results / ".pipe-publish-live").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(live.get(), LOCK_EX), 0);
  pipeline.steps = {engine::step("train")};
  pipeline.steps[0].publish_to = results;
  EXPECT_EQ(run().status, RunStatus::succeeded);
  EXPECT_EQ(core::read_file(results / "out"), "train");
  EXPECT_FALSE(std::filesystem::exists(results / ".pipe-publish-dead"));
  EXPECT_TRUE(std::filesystem::exists(results / ".pipe-publish-live" / "out"));
  EXPECT_TRUE(std::filesystem::exists(results / "own" / "out"));
  EXPECT_EQ(core::entries_of(results).size(), 3u) << "its own is removed";
}

class TemporaryOutputs : public RunPolicies {
 protected:
  /// `sort` and `index` take what `align` makes, and `align` what `trim` makes.
  TemporaryOutputs() {
    pipeline.steps = {engine::step("trim"), engine::step("align", {"trim"}),
                      engine::step("sort", {"align"}), engine::step("index", {"align"})};
    pipeline.steps[0].outputs[0].temp = pipeline.steps[1].outputs[0].temp = true;
  }
  bool has(const std::string& name) { return !artifact_path(name).empty(); }
  std::string artifact_path(const std::string& name) {
    store::RunStore store(folder.path() / "state");
    const store::ArtifactStore artifacts(folder.path() / "state" / "artifacts");
    for (const auto& record : store.runs().steps("run-" + std::to_string(count)))
      if (record.name == name && artifacts.has(record.outputs.at(0).digest))
        return artifacts.path(record.outputs[0].digest);
    return {};
  }
};

TEST_F(TemporaryOutputs, are_removed_when_no_step_needs_them_and_made_again_when_one_does) {
  EXPECT_EQ(run().succeeded, 4u);
  EXPECT_FALSE(has("trim") || has("align"));
  EXPECT_TRUE(has("sort") && has("index"));
  EXPECT_EQ(run().cached, 4u);
  pipeline.steps[3].version = "2";
  const auto end = run();
  EXPECT_EQ(end.status, RunStatus::succeeded);
  EXPECT_EQ(end.succeeded, 3u);
  EXPECT_EQ(end.cached, 1u) << "sort";
  EXPECT_EQ(orchestrator.started["trim"], 2);
  EXPECT_EQ(orchestrator.started["sort"], 1);
  EXPECT_FALSE(has("trim") || has("align"));
}

TEST_F(TemporaryOutputs, stay_while_a_step_that_takes_them_has_failed) {
  orchestrator.steps["index"] = fails_until(9, fails_with(1));
  EXPECT_EQ(run().status, RunStatus::failed);
  EXPECT_TRUE(has("align"));
  EXPECT_FALSE(has("trim"));
  orchestrator.steps.erase("index");
  EXPECT_EQ(run().cached, 3u);
  EXPECT_FALSE(has("align"));
}

TEST_F(TemporaryOutputs, stay_if_no_step_takes_them_or_something_else_has_their_content) {
  pipeline.steps.pop_back();
  pipeline.steps.pop_back();
  pipeline.steps.push_back(engine::step("kept", {"align"}));
  orchestrator.steps["kept"] = orchestrator.steps["trim"] =
      [](const orchestrators::Attempt& attempt) { return writes(attempt, "the same"); };
  EXPECT_EQ(run().succeeded, 3u);
  EXPECT_TRUE(has("trim") && has("kept"));
  EXPECT_FALSE(has("align"));
  EXPECT_EQ(run({.only_step = "align"}).succeeded, 1u);
  EXPECT_TRUE(has("align")) << "the run was asked for this output";
}

TEST_F(TemporaryOutputs, stay_while_a_step_needs_another_artifact_of_the_same_content) {
  pipeline.steps = {engine::step("early"), engine::step("late"), engine::step("reads", {"early"}),
                    engine::step("slow", {"reads"}), engine::step("index", {"late", "slow"})};
  pipeline.steps[0].outputs[0].temp = pipeline.steps[1].outputs[0].temp = true;
  orchestrator.steps["early"] = orchestrator.steps["late"] =
      [](const orchestrators::Attempt& attempt) { return writes(attempt, "the same"); };
  orchestrator.begins_after["slow"] = std::chrono::milliseconds(500);
  EXPECT_EQ(run().succeeded, 5u);
  EXPECT_EQ(orchestrator.started["late"], 1) << "the output of 'late' was kept for 'index'";
  EXPECT_FALSE(has("late"));
}

TEST_F(TemporaryOutputs, that_cannot_be_made_again_fail_the_step_that_needs_them) {
  EXPECT_EQ(run().succeeded, 4u);
  orchestrator.steps["trim"] = fails_until(9, fails_with(1));
  pipeline.steps[3].version = "2";
  EXPECT_EQ(run().status, RunStatus::failed);
  EXPECT_EQ(status_of("sort"), StepStatus::cached);
  EXPECT_THAT(recorder.end_of("index").failure->message, HasSubstr("temporary output 'align.out'"));
}

TEST_F(RunTest, step_that_is_stopped_before_a_retry_says_that_it_has_begun) {
  pipeline.steps = {step("flaky")};
  pipeline.steps[0].retry = RetrySettings{.max_retries = 1, .delay = Duration(60'000)};
  orchestrator.steps["flaky"] = [](const orchestrators::Attempt&) { return fails_with(1); };
  recorder.on_event = [this](const Event& event) {
    if (std::get_if<event::StepRetried>(&event)) cancel.stop(core::StopLevel::graceful);
  };
  run();
  EXPECT_EQ(recorder.end_of("flaky").failure->message, "cancelled before its next attempt");
}

}  // namespace
}  // namespace pipeline::engine
