#include "engine/run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <sstream>

#include "core/diagnostic.hpp"
#include "gpu/lock_folder.hpp"
#include "orchestrators/routing_orchestrator.hpp"
#include "unit/engine/fake_orchestrator.hpp"

namespace pipeline::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class Recorder final : public EventSink {
 public:
  void emit(const Event& event) override {
    events.push_back(event);
    if (on_event) on_event(event);
  }
  std::vector<Event> events;
  std::function<void(const Event&)> on_event;

  std::vector<std::string> lines(const std::string& step) const {
    std::vector<std::string> found;
    for (const auto& event : events)
      if (const auto* log = std::get_if<event::StepLog>(&event); log && log->step == step)
        found.push_back(log->line);
    return found;
  }
  const event::StepFinished& end_of(const std::string& step) const {
    for (const auto& event : events)
      if (const auto* finished = std::get_if<event::StepFinished>(&event);
          finished && finished->step == step)
        return *finished;
    throw std::runtime_error(step + " has no end");
  }
};

StepSpec step(std::string name, std::vector<std::string> from = {},
              std::vector<std::string> after = {}) {
  StepSpec spec;
  spec.name = name;
  spec.command.arguments = {Template{{std::string("do-" + name)}}};
  spec.outputs = {{"out", "out"}};
  for (const auto& other : from) spec.inputs.push_back({other, {{other, "out"}}});
  spec.after = std::move(after);
  return spec;
}

class RunTest : public ::testing::Test {
 protected:
  RunSummary run(RunOptions options = {}) {
    return with_all(std::move(options), [](Services services, auto&... rest) {
      return engine::run(services, rest...);
    });
  }
  void prepare_detached(RunOptions options) {
    with_all(std::move(options), [](Services services, auto&... rest) -> async::Task<RunSummary> {
      co_await engine::prepare_detached(services, rest...);
      co_return RunSummary{};
    });
  }
  template <class Do>
  RunSummary with_all(RunOptions options, Do work) {
    asio::io_context loop;
    store::RunStore runs(folder.path() / "state");
    store::ArtifactStore artifacts(folder.path() / "state" / "artifacts");
    store::StatIndex stats(folder.path() / "state" / "stat-index");
    std::map<std::string, std::vector<store::TreeEntry>> files;
    const CodeProvider code{
        [&](const StepSpec& spec) -> const std::vector<store::TreeEntry>& {
          auto& entries = files[spec.name];
          entries.clear();
          for (const auto& [name, text] : sources[spec.name]) {
            core::write_file_atomically(folder.path() / name, text);
            entries.push_back({name, folder.path() / name});
          }
          return entries;
        },
        [&](const StepSpec&, std::string_view output) -> std::optional<std::string> {
          if (when_explained) when_explained();
          return output.find("table.csv") == std::string_view::npos
                     ? std::nullopt
                     : std::optional<std::string>("add table.csv to `code:`");
        }};
    recorder.events.clear();
    if (options.run_id.empty()) options.run_id = "run-" + std::to_string(++count);
    std::exception_ptr error;
    RunSummary summary;
    orchestrators::Orchestrator& place = places ? *places : orchestrator;
    asio::co_spawn(
        loop,
        work(Services{pipeline, place, runs, artifacts, stats, code}, recorder, cancel, options),
        [&](std::exception_ptr failed, RunSummary result) {
          error = failed;
          summary = std::move(result);
        });
    loop.run();
    if (error) std::rethrow_exception(error);
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "state" / "work" / options.run_id));
    return summary;
  }
  std::string artifact(const std::string& run_id, const std::string& name) {
    store::RunStore runs(folder.path() / "state");
    const store::ArtifactStore artifacts(folder.path() / "state" / "artifacts");
    for (const auto& record : runs.steps(run_id))
      if (record.name == name) return core::read_file(artifacts.path(record.outputs.at(0).digest));
    return "no such step";
  }
  StepStatus status_of(const std::string& name) { return recorder.end_of(name).status; }

  core::TemporaryFolder folder;
  PipelineSpec pipeline{.name = "test"};
  FakeOrchestrator orchestrator;
  std::unique_ptr<orchestrators::Orchestrator> places;  ///< Instead of it.
  Recorder recorder;
  std::function<void()> when_explained;  ///< Called when advice for a failed step is looked for.
  core::CancelSource cancel;
  std::map<std::string, std::map<std::string, std::string>> sources;
  int count = 0;
};

TEST_F(RunTest, an_output_that_cannot_be_kept_fails_its_step_and_is_retried) {
  pipeline.steps = {step("a")};
  pipeline.steps[0].retry.max_retries = 1;
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

/// What a gathered input shows: each entry with its content, then the index.
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
  spec.instance = InstanceSpec{of, {{"c", value}}};
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
  EXPECT_EQ(links, 2u) << "nothing is copied";
  EXPECT_FALSE(std::filesystem::exists(entry)) << "gone with the attempt";
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

TEST_F(RunTest, step_is_retried_as_often_as_it_says) {
  pipeline.steps = {step("flaky")};
  pipeline.steps[0].retry = {.max_retries = 2, .delay = Duration(1), .backoff = 2.0};
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
  pipeline.steps[0].retry.on_oom = {.memory = 2, .max = 300};
  orchestrator.steps["hungry"] = [](const orchestrators::Attempt& attempt) {
    const auto memory = attempt.step.settings->resources.memory;
    return memory < 300U ? runs_out_of_memory() : writes(attempt, std::to_string(*memory));
  };
  EXPECT_EQ(run().status, RunStatus::succeeded);
  EXPECT_EQ(artifact("run-1", "hungry"), "300") << "the last step is cut to `max`";
  std::vector<std::optional<std::uint64_t>> next, limits;
  for (const auto& event : recorder.events)
    if (const auto* retried = std::get_if<event::StepRetried>(&event)) {
      next.push_back(retried->memory);
      EXPECT_EQ(retried->delay.count(), 0);
    }
  for (const auto& attempt : store::RunStore(folder.path() / "state").attempts("run-1", "hungry"))
    limits.push_back(attempt.usage.memory_limit);
  EXPECT_THAT(next, ElementsAre(200U, 300U));
  EXPECT_THAT(limits, ElementsAre(100U, 200U, 300U));
}

TEST_F(RunTest, step_that_needs_more_than_it_may_have_fails_and_says_so) {
  pipeline.steps = {step("hungry")};
  pipeline.steps[0].settings->resources.memory = 100;
  pipeline.steps[0].retry.on_oom = {.max = 150};
  orchestrator.steps["hungry"] = [](const orchestrators::Attempt&) { return runs_out_of_memory(); };
  EXPECT_EQ(run().status, RunStatus::failed);
  EXPECT_EQ(orchestrator.started["hungry"], 2);
  EXPECT_THAT(recorder.end_of("hungry").failure->hints,
              testing::Contains("`retry.on_oom` gives the step at most 150 B"));
}

TEST_F(RunTest, step_without_a_limit_of_memory_has_nothing_to_raise) {
  pipeline.steps = {step("hungry")};
  pipeline.steps[0].retry.on_oom = {.max = 150};
  orchestrator.steps["hungry"] = [](const orchestrators::Attempt&) { return runs_out_of_memory(); };
  EXPECT_EQ(run().status, RunStatus::failed);
  EXPECT_EQ(orchestrator.started["hungry"], 1);
  EXPECT_THAT(recorder.end_of("hungry").failure->hints, Contains(HasSubstr("had none here")));
}

TEST_F(RunTest, retries_end_with_the_last_failure) {
  pipeline.steps = {step("flaky")};
  pipeline.steps[0].retry = {.max_retries = 1};
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

TEST_F(RunTest, attempts_that_end_for_no_fault_of_the_step_do_not_use_up_its_retries) {
  pipeline.steps = {step("flaky")};
  pipeline.steps[0].retry = {.max_retries = 1};
  pipeline.steps[0].retry.max_infrastructure_retries = 1;
  orchestrator.steps["flaky"] = [](const orchestrators::Attempt& attempt) {
    return attempt.number == 1   ? fails_with(1)
           : attempt.number == 2 ? loses_its_node()
                                 : writes(attempt, "third time");
  };
  EXPECT_EQ(run().status, RunStatus::succeeded);
  EXPECT_EQ(recorder.end_of("flaky").attempts, 3u);
}

TEST_F(RunTest, attempts_that_end_for_no_fault_of_the_step_have_an_end_too) {
  pipeline.steps = {step("unlucky"), step("here")};
  pipeline.steps[0].retry.max_infrastructure_retries = 1;
  orchestrator.steps["unlucky"] =
      orchestrator.steps["here"] = [](const orchestrators::Attempt&) { return loses_its_node(); };
  EXPECT_EQ(run().status, RunStatus::failed);
  EXPECT_EQ(recorder.end_of("unlucky").attempts, 2u);
  EXPECT_EQ(recorder.end_of("here").attempts, 1u)
      << "nothing is repeated unasked where losing a machine means losing the run";
}

class RunInPlaces : public RunTest {
 protected:
  void SetUp() override {
    places = orchestrators::make_routing_orchestrator("near", [this](const std::string& name) {
      auto place = std::make_unique<FakeOrchestrator>(name, name == "near");
      (name == "near" ? near : far) = place.get();
      return place;
    });
    pipeline.steps = {step("load"), step("train", {"load"}), step("plot", {"train"})};
    pipeline.steps[1].orchestrator = "far";
  }
  FakeOrchestrator *near = nullptr, *far = nullptr;
};

TEST_F(RunInPlaces, each_step_runs_where_it_says_with_the_artifacts_of_the_others) {
  EXPECT_EQ(run().status, RunStatus::succeeded);
  EXPECT_THAT(near->order, ElementsAre("load", "plot"));
  EXPECT_THAT(far->order, ElementsAre("train"));
  store::RunStore runs(folder.path() / "state");
  EXPECT_EQ(runs.find_run("run-1")->orchestrator, "near, far");
  EXPECT_EQ(run().cached, 3u);
}

TEST_F(RunInPlaces, one_that_no_step_is_in_is_never_made) {
  for (auto& each : pipeline.steps) each.orchestrator = "far";
  EXPECT_EQ(run().status, RunStatus::succeeded);
  EXPECT_EQ(near, nullptr);
}

TEST_F(RunInPlaces, steps_elsewhere_take_no_slot_of_this_machine) {
  pipeline.steps = {step("long"), step("elsewhere")};
  pipeline.steps[1].orchestrator = "far";
  recorder.on_event = [this](const Event& event) {
    if (const auto* started = std::get_if<event::StepStarted>(&event);
        started && started->step == "long")
      near->blocking = {"long"};
    if (const auto* finished = std::get_if<event::StepFinished>(&event);
        finished && finished->step == "elsewhere")
      cancel.stop(core::StopLevel::graceful);
  };
  run({.jobs = 1});
  EXPECT_EQ(status_of("elsewhere"), StepStatus::succeeded);
  EXPECT_EQ(status_of("long"), StepStatus::cancelled);
}

TEST_F(RunInPlaces, an_environment_is_looked_at_again_by_the_place_that_it_is_of) {
  pipeline.steps[0].settings->docker.parent_image =
      pipeline.steps[2].settings->docker.parent_image = "near-image";
  run();
  asio::io_context loop;
  std::vector<bool> answers;
  near->changed_images = {"near-image"};
  for (const auto* recheck : {"near near-image", "far image", "far near-image", "unsigned"})
    asio::co_spawn(loop, places->unchanged(recheck),
                   [&](std::exception_ptr, bool same) { answers.push_back(same); });
  loop.run();
  EXPECT_THAT(answers, ElementsAre(false, true, true, false));
}

/// What a driver leaves that is killed while `step` runs.
class ResumedRun : public RunInPlaces {
 protected:
  void kill_during(const std::string& step) {
    const auto state = folder.path() / "state", left = folder.path() / "left";
    recorder.on_event = [=](const Event& event) {
      const auto* started = std::get_if<event::StepStarted>(&event);
      if (started && started->step == step)
        std::filesystem::copy(state, left, std::filesystem::copy_options::recursive);
    };
    run();
    recorder.on_event = {};
    take_over(left);
  }
  void take_over(const std::filesystem::path& left) {
    const auto state = folder.path() / "state";
    core::remove_tree(state);
    std::filesystem::rename(left, state);
    store::RunStore runs(state);
    auto record = *runs.find_run("run-1");
    ASSERT_EQ(record.status, RunStatus::running);
    record.status = RunStatus::interrupted;
    runs.finish_run(record);
    near->order.clear();
    far->order.clear();
  }
};

TEST_F(ResumedRun, what_was_done_stays_and_what_may_still_run_is_joined) {
  kill_during("train");
  const auto summary = run({.resume = true, .run_id = "run-1"});
  EXPECT_EQ(summary.status, RunStatus::succeeded);
  EXPECT_THAT(near->order, ElementsAre("plot"));
  EXPECT_THAT(far->joined, ElementsAre("train.1"));
  store::RunStore runs(folder.path() / "state");
  EXPECT_EQ(runs.runs().size(), 1u);
  for (const auto& step : runs.steps("run-1"))
    EXPECT_EQ(step.status, StepStatus::succeeded) << step.name;
}

TEST_F(ResumedRun, a_second_driver_that_is_killed_before_it_joined_makes_no_difference) {
  kill_during("train");
  const auto state = folder.path() / "state", left = folder.path() / "left";
  recorder.on_event = [=](const Event& event) {
    if (std::get_if<event::RunStarted>(&event))
      std::filesystem::copy(state, left, std::filesystem::copy_options::recursive);
  };
  run({.resume = true, .run_id = "run-1"});
  recorder.on_event = {};
  take_over(left);
  far->joined.clear();
  EXPECT_EQ(run({.resume = true, .run_id = "run-1"}).status, RunStatus::succeeded);
  EXPECT_THAT(far->joined, ElementsAre("train.1"));
}

TEST_F(ResumedRun, what_it_made_itself_is_taken_whatever_the_cache_may_give) {
  for (auto& each : pipeline.steps) each.cache = false;
  kill_during("train");
  EXPECT_EQ(run({.use_cache = false, .resume = true, .run_id = "run-1"}).status,
            RunStatus::succeeded);
  EXPECT_THAT(near->order, ElementsAre("plot"));
}

TEST_F(ResumedRun, what_runs_of_a_step_that_has_changed_since_is_given_up) {
  kill_during("train");
  pipeline.steps[1].parameters["epochs"] = 2;
  EXPECT_EQ(run({.resume = true, .run_id = "run-1"}).status, RunStatus::succeeded);
  EXPECT_THAT(far->joined, IsEmpty());
  EXPECT_THAT(far->given_up, ElementsAre("train.1"));
  EXPECT_EQ(recorder.end_of("train").attempts, 2u);
}

TEST_F(ResumedRun, where_nothing_outlives_the_driver_the_attempt_is_made_anew) {
  kill_during("plot");
  EXPECT_EQ(run({.resume = true, .run_id = "run-1"}).status, RunStatus::succeeded);
  EXPECT_THAT(near->joined, IsEmpty());
  EXPECT_THAT(near->order, ElementsAre("plot"));
  EXPECT_EQ(recorder.end_of("plot").attempts, 2u);
}

/// The driver was killed when the output had gone into the store, and the run had no record of it
/// yet.
TEST_F(ResumedRun, what_an_attempt_made_is_found_where_the_store_has_it_already) {
  kill_during("train");
  const auto state = folder.path() / "state", attempt = state / "work/run-1/train.1";
  core::write_file_atomically(folder.path() / "model", "made before");
  const auto stored = store::ArtifactStore(state / "artifacts").take(folder.path() / "model");
  core::make_folders(attempt / "scratch");
  core::write_file_atomically(
      attempt / "scratch/.taken-out",
      R"({"digest":")" + stored.digest.hex() + R"(","is_directory":false,"bytes":11})");
  far->steps["train"] = [](const orchestrators::Attempt&) {
    return orchestrators::AttemptResult{std::nullopt, 0, "fake"};
  };
  EXPECT_EQ(run({.resume = true, .run_id = "run-1"}).status, RunStatus::succeeded);
  EXPECT_THAT(far->joined, ElementsAre("train.1"));
  EXPECT_EQ(recorder.end_of("train").attempts, 1u);
  store::RunStore runs(state);
  EXPECT_EQ(runs.steps("run-1").at(1).outputs.at(0).digest, stored.digest);
}

TEST_F(ResumedRun, a_note_of_what_the_store_lacks_is_no_output) {
  kill_during("train");
  const auto scratch = folder.path() / "state/work/run-1/train.1/scratch";
  core::make_folders(scratch);
  core::write_file_atomically(scratch / ".taken-out", R"({"digest":")" + std::string(64, '0') +
                                                          R"(","is_directory":false,"bytes":1})");
  far->steps["train"] = [](const orchestrators::Attempt&) {
    return orchestrators::AttemptResult{std::nullopt, 0, "fake"};
  };
  EXPECT_EQ(run({.resume = true, .run_id = "run-1"}).status, RunStatus::failed);
  EXPECT_EQ(recorder.end_of("train").failure->kind, FailureKind::missing_output);
}

TEST_F(ResumedRun, retries_that_were_used_are_used) {
  pipeline.steps[1].retry = {.max_retries = 1};
  run();  // makes the places
  far->steps["train"] = [](const orchestrators::Attempt& attempt) {
    return fails_with(static_cast<int>(attempt.number));
  };
  core::remove_tree(folder.path() / "state");
  count = 0;
  bool is_second = false;
  const auto state = folder.path() / "state", left = folder.path() / "left";
  recorder.on_event = [&](const Event& event) {
    if (std::get_if<event::StepRetried>(&event)) is_second = true;
    const auto* started = std::get_if<event::StepStarted>(&event);
    if (started && started->step == "train" && is_second)
      std::filesystem::copy(state, left, std::filesystem::copy_options::recursive);
  };
  run();
  recorder.on_event = {};
  take_over(left);
  EXPECT_EQ(run({.resume = true, .run_id = "run-1"}).status, RunStatus::failed);
  EXPECT_THAT(far->joined, ElementsAre("train.2"));
  EXPECT_EQ(recorder.end_of("train").attempts, 2u);
  EXPECT_EQ(recorder.end_of("train").failure->message, "exited with code 2");
}

TEST_F(ResumedRun, memory_that_was_raised_stays_raised) {
  pipeline.steps[1].settings->resources.memory = 100;
  pipeline.steps[1].retry.on_oom = {.max = 1000};
  run();  // makes the places
  const auto needs_400 = [](const orchestrators::Attempt& attempt) {
    const auto memory = attempt.step.settings->resources.memory;
    return memory < 400U
               ? orchestrators::AttemptResult{Failure{
                                                  FailureKind::out_of_memory, "was killed", {}, {}},
                                              137, "fake"}
               : writes(attempt, std::to_string(*memory));
  };
  far->steps["train"] = needs_400;
  core::remove_tree(folder.path() / "state");
  count = 0;
  const auto state = folder.path() / "state", left = folder.path() / "left";
  recorder.on_event = [&](const Event& event) {
    const auto* started = std::get_if<event::StepStarted>(&event);
    if (started && started->step == "train" && started->attempt == 2)
      std::filesystem::copy(state, left, std::filesystem::copy_options::recursive);
  };
  run();
  recorder.on_event = {};
  take_over(left);
  EXPECT_EQ(run({.resume = true, .run_id = "run-1"}).status, RunStatus::succeeded);
  EXPECT_THAT(far->joined, ElementsAre("train.2"));
  std::vector<std::optional<std::uint64_t>> limits;
  for (const auto& attempt : store::RunStore(state).attempts("run-1", "train"))
    limits.push_back(attempt.usage.memory_limit);
  EXPECT_THAT(limits, ElementsAre(100U, 200U, 400U));
}

TEST_F(ResumedRun, one_that_goes_on_cannot_be_resumed) {
  kill_during("train");
  store::RunStore runs(folder.path() / "state");
  auto record = *runs.find_run("run-1");
  record.driver.process = store::ProcessId::self();
  runs.resume_run(record);
  EXPECT_THROW(run({.resume = true, .run_id = "run-1"}), core::InputError);
}

TEST_F(ResumedRun, who_holds_its_lease_goes_on_with_a_run_that_is_recorded_as_running) {
  const store::LeaseId lease{"lab", "ml", "driver"};
  const auto status = [&] {
    return store::RunStore(folder.path() / "state").find_run("run-1")->status;
  };
  prepare_detached({.run_id = "run-1", .driver = {{}, lease}});
  EXPECT_THAT(near->order, IsEmpty());
  EXPECT_EQ(status(), RunStatus::running);
  EXPECT_THROW(run({.resume = true, .run_id = "run-1"}), core::InputError);
  EXPECT_THROW(run({.resume = true, .run_id = "run-1", .driver = {{}, {"lab", "ml", "other"}}}),
               core::InputError);
  EXPECT_EQ(run({.resume = true, .run_id = "run-1", .driver = {{}, lease}}).status,
            RunStatus::succeeded);
  EXPECT_THAT(near->order, ElementsAre("load", "plot"));
  store::RunStore runs(folder.path() / "state");
  EXPECT_EQ(runs.find_run("run-1")->driver.lease, lease);
}

TEST_F(RunTest, a_run_whose_images_cannot_be_made_is_not_handed_over) {
  pipeline.steps = {step("good"), step("bad")};
  pipeline.steps[1].settings->docker.parent_image = "broken";
  orchestrator.broken_images = {"broken"};
  EXPECT_THROW(prepare_detached({.run_id = "run-1", .driver = {{}, {"lab", "ml", "driver"}}}),
               core::BuildError);
  EXPECT_TRUE(store::RunStore(folder.path() / "state").runs().empty());
}

TEST_F(RunTest, what_a_place_knows_of_a_failure_stands_before_the_last_lines_of_the_log) {
  pipeline.steps = {step("bad")};
  orchestrator.steps["bad"] = [](const orchestrators::Attempt& attempt) {
    attempt.log.write(Stream::out, "last line\n");
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

TEST_F(RunTest, interrupted_run_cancels_what_runs_and_what_waits) {
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
    std::filesystem::remove_all(attempt.outputs.parent_path());  // the disk is gone under it
    return orchestrators::AttemptResult{std::nullopt, 0, "fake"};
  };
  EXPECT_EQ(run().status, RunStatus::failed);
}

TEST_F(RunTest, second_run_reuses_every_step) {
  pipeline.steps = {step("a"), step("b", {"a"}), step("no_outputs", {"a"})};
  pipeline.steps[2].outputs.clear();
  run();
  const auto summary = run();
  EXPECT_EQ(summary.cached, 3u);
  EXPECT_EQ(recorder.end_of("b").reused_from, "run-1");
  EXPECT_EQ(orchestrator.started["b"], 1);
  EXPECT_EQ(artifact("run-2", "b"), "b");
}

TEST_F(RunTest, cached_step_runs_again_without_the_cache) {
  pipeline.steps = {step("a"), step("b")};
  pipeline.steps[1].cache = false;
  run();
  run();
  EXPECT_EQ(orchestrator.started["a"], 1);
  EXPECT_EQ(orchestrator.started["b"], 2);
  run({.use_cache = false});
  EXPECT_EQ(orchestrator.started["a"], 2);
}

TEST_F(RunTest, edit_reruns_just_what_uses_it) {
  pipeline.steps = {step("load"), step("train", {"load"}), step("other", {"load"})};
  sources["train"] = {{"train.py", "1"}};
  sources["other"] = {{"other.py", "1"}};
  run();
  sources["train"]["train.py"] = "2";
  run();
  EXPECT_EQ(status_of("load"), StepStatus::cached);
  EXPECT_EQ(status_of("train"), StepStatus::succeeded);
  EXPECT_EQ(status_of("other"), StepStatus::cached);
}

TEST_F(RunTest, step_that_gives_the_same_again_spares_those_behind_it) {
  pipeline.steps = {step("load"), step("train", {"load"})};
  sources["load"] = {{"load.py", "1"}};
  run();
  sources["load"]["load.py"] = "1 # a comment";
  run();
  EXPECT_EQ(status_of("load"), StepStatus::succeeded);
  EXPECT_EQ(status_of("train"), StepStatus::cached);
}

TEST_F(RunTest, damaged_artifact_is_made_again) {
  pipeline.steps = {step("a")};
  run();
  {
    store::RunStore runs(folder.path() / "state");
    const store::ArtifactStore artifacts(folder.path() / "state" / "artifacts");
    const auto path = artifacts.path(runs.steps("run-1").at(0).outputs.at(0).digest);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    std::ofstream(path) << "something else";
  }
  run();
  EXPECT_EQ(orchestrator.started["a"], 2);
  EXPECT_EQ(artifact("run-2", "a"), "a");
}

TEST_F(RunTest, failed_attempt_leaves_nothing_to_reuse) {
  pipeline.steps = {step("a")};
  orchestrator.steps["a"] = [](const orchestrators::Attempt& attempt) {
    writes(attempt, "half done");
    return fails_with(1);
  };
  run();
  orchestrator.steps.clear();
  run();
  EXPECT_EQ(orchestrator.started["a"], 2);
  EXPECT_EQ(artifact("run-2", "a"), "a");
}

TEST_F(RunTest, jobs_bounds_the_steps_at_a_time) {
  for (int i = 0; i < 20; ++i) pipeline.steps.push_back(step("s" + std::to_string(i)));
  run({.jobs = 3});
  EXPECT_EQ(orchestrator.most_at_once, 3);
}

TEST_F(RunTest, only_step_runs_what_it_needs) {
  pipeline.steps = {step("a"), step("b", {"a"}), step("c", {"b"}), step("d")};
  run({.only_step = "b"});
  EXPECT_THAT(orchestrator.order, ElementsAre("a", "b"));
  EXPECT_THROW(run({.only_step = "bb"}), core::InputError);
}

TEST_F(RunTest, environment_known_only_once_it_is_made_still_gives_a_hit) {
  orchestrator.known_before_build = false;
  pipeline.steps = {step("a"), step("b", {"a"})};
  run();
  EXPECT_EQ(run().cached, 2u);
}

TEST_F(RunTest, secret_reaches_the_step_and_nothing_else) {
  ::setenv("RUN_TEST_SECRET", "canary-5d1f", 1);
  pipeline.steps = {step("a")};
  pipeline.steps[0].secrets = {{"RUN_TEST_SECRET", std::nullopt}};
  orchestrator.steps["a"] = [](const orchestrators::Attempt& attempt) {
    const auto& value = attempt.secrets.at("RUN_TEST_SECRET");
    attempt.log.write(Stream::out, "token is " + value.substr(0, 4));
    attempt.log.write(Stream::out, value.substr(4) + "\n");
    return writes(attempt, "made with " + std::to_string(value.size()) + " bytes");
  };
  EXPECT_EQ(run().status, RunStatus::succeeded);
  EXPECT_THAT(recorder.lines("a"), ElementsAre("token is ***"));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
    if (entry.is_regular_file()) {
      EXPECT_EQ(core::read_file(entry.path()).find("canary-5d1f"), std::string::npos)
          << entry.path();
    }
  }
  ::unsetenv("RUN_TEST_SECRET");
  EXPECT_THROW(run(), core::EnvironmentError);
}

TEST_F(RunTest, changed_secret_reuses_and_changed_variable_reruns) {
  pipeline.steps = {step("a")};
  pipeline.steps[0].secrets = {{"RUN_TEST_TOKEN", std::nullopt}};
  pipeline.steps[0].environment = {{"RUN_TEST_VARIABLE", std::nullopt}};
  ::setenv("RUN_TEST_TOKEN", "first-value", 1);
  ::setenv("RUN_TEST_VARIABLE", "1", 1);
  run();
  ::setenv("RUN_TEST_TOKEN", "second-value", 1);
  run();
  EXPECT_EQ(orchestrator.started["a"], 1);
  ::setenv("RUN_TEST_VARIABLE", "2", 1);
  run();
  EXPECT_EQ(orchestrator.started["a"], 2);
}

TEST_F(RunTest, failure_over_a_file_outside_of_the_code_brings_the_line_to_add) {
  pipeline.steps = {step("a")};
  orchestrator.steps["a"] = [](const orchestrators::Attempt& attempt) {
    attempt.log.write(Stream::err, "No such file or directory: 'table.csv'\n");
    return fails_with(1);
  };
  run();
  EXPECT_THAT(recorder.end_of("a").failure->hints, ElementsAre("add table.csv to `code:`"));
  EXPECT_THAT(recorder.end_of("a").failure->details,
              ElementsAre("No such file or directory: 'table.csv'"));
}

TEST_F(RunTest, run_store_tells_the_run_afterwards) {
  pipeline.steps = {step("a"), step("b", {"a"})};
  orchestrator.steps["b"] = [](const orchestrators::Attempt& attempt) {
    attempt.log.write(Stream::out, "hello\n");
    return fails_with(9);
  };
  run();
  store::RunStore runs(folder.path() / "state");
  const auto record = runs.find_run("latest");
  ASSERT_TRUE(record);
  EXPECT_EQ(record->status, RunStatus::failed);
  const auto steps = runs.steps(record->id);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].status, StepStatus::succeeded);
  EXPECT_EQ(steps[1].status, StepStatus::failed);
  const auto attempts = runs.attempts(record->id, "b");
  ASSERT_EQ(attempts.size(), 1u);
  EXPECT_EQ(attempts[0].exit_code, 9);
  EXPECT_EQ(core::read_file(runs.log_file(attempts[0].log)), "hello\n");
}

TEST_F(RunTest, an_attempt_that_prints_nothing_has_no_log_file) {
  pipeline.steps = {step("a")};
  run();
  store::RunStore runs(folder.path() / "state");
  const auto attempts = runs.attempts("run-1", "a");
  ASSERT_EQ(attempts.size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(runs.log_file(attempts[0].log)));
}

TEST_F(RunTest, a_success_is_stored_before_it_is_told) {
  pipeline.steps = {step("a"), step("b", {"a"}), step("c")};
  std::vector<std::string> told;
  recorder.on_event = [&](const Event& event) {
    const auto* finished = std::get_if<event::StepFinished>(&event);
    if (!finished) return;
    told.push_back(finished->step);
    store::RunStore runs(folder.path() / "state");
    const auto records = runs.steps("run-1");
    const auto record = std::ranges::find(records, finished->step, &store::StepRecord::name);
    EXPECT_EQ(record->status, StepStatus::succeeded);
  };
  run();
  EXPECT_THAT(told, UnorderedElementsAre("a", "b", "c"));
}

class PlanTest : public RunTest {
 protected:
  std::vector<StepPlan> plan() {
    asio::io_context loop;
    store::RunStore runs(folder.path() / "state");
    store::ArtifactStore artifacts(folder.path() / "state" / "artifacts");
    store::StatIndex stats(folder.path() / "state" / "stat-index");
    std::map<std::string, std::vector<store::TreeEntry>> files;
    const CodeProvider code{[&](const StepSpec& spec) -> const std::vector<store::TreeEntry>& {
                              for (const auto& [name, text] : sources[spec.name]) {
                                core::write_file_atomically(folder.path() / name, text);
                                files[spec.name].push_back({name, folder.path() / name});
                              }
                              return files[spec.name];
                            },
                            {}};
    std::vector<StepPlan> plans;
    asio::co_spawn(loop, engine::plan({pipeline, orchestrator, runs, artifacts, stats, code}, {}),
                   [&](std::exception_ptr error, std::vector<StepPlan> result) {
                     if (error) std::rethrow_exception(error);
                     plans = std::move(result);
                   });
    loop.run();
    return plans;
  }
};

TEST_F(PlanTest, plan_says_what_will_be_reused_and_what_changed) {
  pipeline.steps = {step("load"), step("train", {"load"}), step("report", {"train"})};
  sources["train"] = {{"train.py", "1"}};
  pipeline.steps[1].parameters["c"] = 1.0;
  auto plans = plan();
  EXPECT_EQ(plans[0].action, StepPlan::Action::run);
  EXPECT_THAT(plans[0].changes, ElementsAre("never run before"));
  run();
  plans = plan();
  for (const auto& one : plans) {
    EXPECT_EQ(one.action, StepPlan::Action::reuse) << one.step;
    EXPECT_EQ(one.reused_from, "run-1");
  }
  sources["train"]["train.py"] = "2";
  pipeline.steps[1].parameters["c"] = 0.5;
  plans = plan();
  EXPECT_EQ(plans[0].action, StepPlan::Action::reuse);
  EXPECT_EQ(plans[1].action, StepPlan::Action::run);
  EXPECT_THAT(plans[1].changes, ElementsAre("code train.py changed", "parameter c: 1.0 -> 0.5"));
  EXPECT_EQ(plans[2].action, StepPlan::Action::depends);
}

TEST_F(PlanTest, plan_has_no_side_effect) {
  pipeline.steps = {step("a")};
  plan();
  EXPECT_EQ(orchestrator.builds, 0);
  EXPECT_TRUE(orchestrator.order.empty());
}

class RunWithGpus : public RunTest {
 protected:
  void SetUp() override {
    ::setenv("PIPE_NVML", NVML_STAND_IN, 1);
    ::setenv("PIPE_GPU_LOCKS", (folder.path() / "locks").c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("PIPE_NVML");
    ::unsetenv("PIPE_GPU_LOCKS");
  }
  static StepSpec on_gpus(std::string name, unsigned count) {
    auto spec = step(std::move(name));
    spec.settings->resources.gpu_count = count;
    return spec;
  }
  static std::string uuid(int index) {
    return "GPU-00000000-0000-4000-8000-00000000000" + std::to_string(index);
  }
};

TEST_F(RunWithGpus, steps_hold_their_gpus_while_they_run_and_the_store_knows_which) {
  pipeline.steps = {on_gpus("a", 3), on_gpus("b", 2), step("c")};
  std::map<std::string, std::vector<orchestrators::AssignedGpu>> seen;
  for (const auto* name : {"a", "b", "c"})
    orchestrator.steps[name] = [&](const orchestrators::Attempt& attempt) {
      gpu::LockFolder locks;
      auto session = locks.try_enter();
      for (const auto& gpu : attempt.gpus)
        EXPECT_EQ(session->holder(gpu.uuid)->step, attempt.step.name);
      seen[attempt.step.name] = attempt.gpus;
      return writes(attempt, "x");
    };
  EXPECT_EQ(run().status, RunStatus::succeeded);
  ASSERT_EQ(seen["a"].size(), 3u);
  EXPECT_EQ(seen["a"][2].uuid, uuid(2));
  EXPECT_EQ(seen["a"][2].index, 2u);
  EXPECT_EQ(seen["a"][2].model, "Tesla V100-SXM2-16GB");
  EXPECT_EQ(seen["b"].size(), 2u) << "has waited for the others";
  EXPECT_EQ(seen["c"].size(), 0u);
  store::RunStore runs(folder.path() / "state");
  ASSERT_EQ(runs.attempts("run-1", "b").at(0).gpus.size(), 2u);
  EXPECT_EQ(runs.attempts("run-1", "b")[0].gpus[1].uuid, seen["b"][1].uuid);
  gpu::LockFolder locks;
  EXPECT_FALSE(locks.try_enter()->is_held(uuid(0)));
  EXPECT_TRUE(locks.try_enter()->queue().empty());
}

TEST_F(RunWithGpus, a_retried_attempt_gets_gpus_again) {
  pipeline.steps = {on_gpus("a", 4)};
  pipeline.steps[0].retry.max_retries = 1;
  std::vector<std::size_t> held;
  orchestrator.steps["a"] = [&](const orchestrators::Attempt& attempt) {
    held.push_back(attempt.gpus.size());
    return attempt.number == 1 ? fails_with(1) : writes(attempt, "x");
  };
  EXPECT_EQ(run().status, RunStatus::succeeded);
  EXPECT_THAT(held, ElementsAre(4u, 4u));
}

TEST_F(RunWithGpus, what_a_container_of_a_dead_driver_uses_is_not_given_to_anyone) {
  pipeline.steps = {on_gpus("a", 4)};
  int asked = 0;
  orchestrator.in_use = [&] {
    return ++asked < 4
               ? std::vector<orchestrators::GpuHold>{{uuid(3), "dead-run", "train", "container x"}}
               : std::vector<orchestrators::GpuHold>{{uuid(0), "run-1", "a", "its own"}};
  };
  EXPECT_EQ(run().status, RunStatus::succeeded);
  EXPECT_GE(asked, 4);
  const auto waits = std::ranges::find_if(recorder.events, [](const Event& event) {
    return std::holds_alternative<event::StepWaits>(event);
  });
  ASSERT_NE(waits, recorder.events.end());
  EXPECT_EQ(std::get<event::StepWaits>(*waits).reason,
            "4 GPUs: GPU 3 is used by a container whose driver is dead");
}

TEST_F(RunWithGpus, one_that_can_never_be_met_keeps_the_run_from_starting) {
  pipeline.steps = {step("before"), on_gpus("a", 5)};
  EXPECT_THROW(run(), core::InputError);
  EXPECT_TRUE(orchestrator.order.empty());
  EXPECT_TRUE(recorder.events.empty());
}

TEST_F(RunWithGpus, a_place_that_chooses_itself_takes_no_names_of_devices) {
  orchestrator.chooses_gpus_itself = true;
  pipeline.steps = {step("a")};
  pipeline.steps[0].settings->resources.devices = nlohmann::json::array({3, 1});
  try {
    run();
    FAIL();
  } catch (const core::InputError& error) {
    EXPECT_THAT(
        error.what(),
        HasSubstr("step 'a' names its GPUs, and the orchestrator fake chooses them itself"));
    EXPECT_THAT(error.what(), HasSubstr("`gpu_count: 2`"));
  }
}

TEST_F(RunWithGpus, those_of_another_machine_are_not_mixed_with_this_ones) {
  gpu::Device device;
  device.uuid = "GPU-elsewhere";
  orchestrator.gpus_elsewhere.emplace().devices.push_back(device);
  pipeline.steps = {on_gpus("a", 1)};
  orchestrator.steps["a"] = [&](const orchestrators::Attempt& attempt) {
    EXPECT_EQ(attempt.gpus.at(0).uuid, "GPU-elsewhere");
    gpu::LockFolder locks;
    EXPECT_FALSE(locks.try_enter()->is_held(uuid(0)));
    return writes(attempt, "x");
  };
  EXPECT_EQ(run().status, RunStatus::succeeded);
  pipeline.steps = {on_gpus("b", 2)};
  EXPECT_THROW(run(), core::InputError) << "that this machine has four is no matter";
}

TEST_F(RunWithGpus, they_are_given_back_as_soon_as_nothing_of_the_step_runs) {
  pipeline.steps = {on_gpus("a", 1)};
  std::vector<bool> held;
  const auto look = [&] { held.push_back(gpu::LockFolder().try_enter()->is_held(uuid(0))); };
  orchestrator.steps["a"] = [&](const orchestrators::Attempt&) {
    look();
    return fails_with(1);
  };
  when_explained = look;  // what is made of an attempt comes after it
  EXPECT_EQ(run().status, RunStatus::failed);
  EXPECT_THAT(held, ElementsAre(true, false));
}

TEST_F(RunWithGpus, another_number_of_gpus_is_another_key_and_other_devices_are_not) {
  pipeline.steps = {on_gpus("a", 1)};
  EXPECT_EQ(run().succeeded, 1u);
  EXPECT_EQ(run().cached, 1u);
  pipeline.steps[0].settings->resources.gpu_count.reset();
  pipeline.steps[0].settings->resources.devices = nlohmann::json::array({3});
  EXPECT_EQ(run().cached, 1u) << "one GPU is one GPU";
  pipeline.steps = {on_gpus("a", 2)};
  EXPECT_EQ(run().succeeded, 1u);
}

}  // namespace
}  // namespace pipeline::engine
