#include "engine/run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/diagnostic.hpp"
#include "orchestrators/routes.hpp"
#include "unit/engine/run_fixture.hpp"

namespace pipeline::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RunInPlaces : public RunTest {
 protected:
  void SetUp() override {
    places.emplace("near", [this](const std::string& name) {
      auto place = std::make_unique<FakeOrchestrator>(name, name == "near");
      (name == "near" ? near : far) = place.get();
      return place;
    });
    pipeline.steps = {step("load"), step("train", {"load"}), step("plot", {"train"})};
    pipeline.steps[1].orchestrator = "far";
  }
  FakeOrchestrator *near = nullptr, *far = nullptr;
};

TEST_F(RunInPlaces, each_step_runs_on_its_orchestrator_with_the_artifacts_of_the_others) {
  EXPECT_EQ(run().status, RunStatus::succeeded);
  EXPECT_THAT(near->order, ElementsAre("load", "plot"));
  EXPECT_THAT(far->order, ElementsAre("train"));
  store::RunStore store(folder.path() / "state");
  EXPECT_EQ(store.runs().find("run-1")->orchestrator, "near, far");
  EXPECT_EQ(run().cached, 3u);
}

TEST_F(RunInPlaces, an_orchestrator_without_steps_is_never_made) {
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

TEST_F(RunInPlaces, an_environment_is_checked_again_by_its_own_orchestrator) {
  pipeline.steps[0].settings->docker.parent_image =
      pipeline.steps[2].settings->docker.parent_image = "near-image";
  run();
  asio::io_context loop;
  std::vector<bool> answers;
  near->changed_images = {"near-image"};
  for (const auto* fingerprint : {"near near-image", "far image", "far near-image", "unsigned"})
    asio::co_spawn(loop, places->matches(fingerprint),
                   [&](std::exception_ptr, bool same) { answers.push_back(same); });
  loop.run();
  EXPECT_THAT(answers, ElementsAre(false, true, true, false));
}

/// Leaves the state of a driver that was killed while `step` ran.
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
    store::RunStore store(state);
    auto record = *store.runs().find("run-1");
    ASSERT_EQ(record.status, RunStatus::running);
    record.status = RunStatus::interrupted;
    store.runs().finish(record);
    near->order.clear();
    far->order.clear();
  }
};

TEST_F(ResumedRun, finished_steps_stay_and_attempts_that_may_still_run_are_joined) {
  kill_during("train");
  const auto summary = run({.resume = true, .run_id = "run-1"});
  EXPECT_EQ(summary.status, RunStatus::succeeded);
  EXPECT_THAT(near->order, ElementsAre("plot"));
  EXPECT_THAT(far->joined, ElementsAre("train.1"));
  store::RunStore store(folder.path() / "state");
  EXPECT_EQ(store.runs().list().size(), 1u);
  for (const auto& step : store.runs().steps("run-1"))
    EXPECT_EQ(step.status, StepStatus::succeeded) << step.name;
}

TEST_F(ResumedRun, published_versions_are_those_of_its_beginning) {
  InputSpec champion;
  champion.name = "champion";
  champion.data = DataSpec{.artifact = "production", .optional = true};
  pipeline.steps[0].inputs = {champion};
  pipeline.steps[1].publish = StringMap{{"out", "production"}};
  pipeline.steps[2].inputs.push_back(champion);
  std::string taken = "nothing";
  kill_during("plot");
  near->steps["plot"] = [&](const orchestrators::Attempt& attempt) {
    taken = core::read_file(attempt.inputs.at(1).path);
    return writes(attempt, "plot");
  };
  EXPECT_EQ(run({.resume = true, .run_id = "run-1"}).status, RunStatus::succeeded);
  EXPECT_THAT(near->order, ElementsAre("plot"))
      << "'load' stays, though its name has a version now";
  EXPECT_EQ(taken, "");
  run();
  EXPECT_EQ(taken, "train") << "a new run takes the current version";
}

TEST_F(ResumedRun, a_command_that_began_before_it_was_joined_was_not_prepared) {
  kill_during("train");
  far->steps["train"] = [](const orchestrators::Attempt& attempt) {
    auto result = writes(attempt, "train");
    result.ended = std::chrono::steady_clock::now();
    result.began = *result.ended - std::chrono::hours(1);
    result.moved_in = std::chrono::seconds(1);
    return result;
  };
  run({.resume = true, .run_id = "run-1"});
  const auto attempts = store::RunStore(folder.path() / "state").attempts().list("run-1", "train");
  ASSERT_EQ(attempts.size(), 1u);
  EXPECT_EQ(attempts[0].phases.preparing, std::chrono::milliseconds(0));
  EXPECT_EQ(attempts[0].phases.transfers, std::chrono::milliseconds(0));
  EXPECT_EQ(attempts[0].phases.running, std::chrono::hours(1));
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

TEST_F(ResumedRun, results_of_the_run_are_taken_whatever_the_cache_may_give) {
  for (auto& each : pipeline.steps) each.cache = false;
  kill_during("train");
  EXPECT_EQ(run({.use_cache = false, .resume = true, .run_id = "run-1"}).status,
            RunStatus::succeeded);
  EXPECT_THAT(near->order, ElementsAre("plot"));
}

TEST_F(ResumedRun, the_attempt_of_a_step_that_has_changed_since_is_given_up) {
  kill_during("train");
  pipeline.steps[1].parameters["epochs"] = 2;
  EXPECT_EQ(run({.resume = true, .run_id = "run-1"}).status, RunStatus::succeeded);
  EXPECT_THAT(far->joined, IsEmpty());
  EXPECT_THAT(far->given_up, ElementsAre("train.1"));
  EXPECT_EQ(recorder.end_of("train").attempts, 2u);
}

TEST_F(ResumedRun, a_new_attempt_has_nothing_that_the_earlier_one_made) {
  pipeline.steps[0].retry = RetrySettings{.max_retries = 1};
  places->main();  // Makes `near`.
  near->steps["load"] = [](const orchestrators::Attempt& attempt) {
    if (attempt.number == 1) return fails_with(1);
    attempt.io.log.write(Stream::out, "@pipe {\"metric\": \"old\", \"value\": 1}\n");
    return writes(attempt, "old");
  };
  kill_during("train");
  near->steps["load"] = [](const orchestrators::Attempt& attempt) {
    attempt.io.log.write(Stream::out, "@pipe {\"metric\": \"new\", \"value\": 2}\n");
    return writes(attempt, "new");
  };
  pipeline.steps[0].parameters["rows"] = 2;
  pipeline.steps.pop_back();
  EXPECT_EQ(run({.resume = true, .run_id = "run-1"}).status, RunStatus::succeeded);
  store::RunStore store(folder.path() / "state");
  EXPECT_EQ(store.attempts().list("run-1", "load").size(), 1u);
  const auto metrics = store.metrics().list("run-1", "load");
  ASSERT_EQ(metrics.size(), 1u);
  EXPECT_EQ(metrics[0].name, "new");
  std::vector<std::string> names;
  for (const auto& each : store.runs().steps("run-1")) names.push_back(each.name);
  EXPECT_THAT(names, ElementsAre("load", "train")) << "`plot` is no step of the pipeline any more";
}

TEST_F(ResumedRun, an_attempt_that_does_not_outlive_the_driver_is_made_anew) {
  kill_during("plot");
  EXPECT_EQ(run({.resume = true, .run_id = "run-1"}).status, RunStatus::succeeded);
  EXPECT_THAT(near->joined, IsEmpty());
  EXPECT_THAT(near->order, ElementsAre("plot"));
  EXPECT_EQ(recorder.end_of("plot").attempts, 2u);
}

std::string taken_record(const std::string& digest) {
  return R"({"digest":")" + digest + R"(","is_directory":false,"bytes":11})";
}

/// Leaves what a driver does that has stored an output of the attempt.
void note_taken(const std::filesystem::path& attempt, const std::string& digest) {
  core::make_folders(attempt / "scratch");
  core::write_file_atomically(attempt / "taken-out", taken_record(digest));
  core::write_file_atomically(attempt / "scratch/.taken-out", "");
}

/// The driver was killed when the output had gone into the store, and the run had no record of it
/// yet.
TEST_F(ResumedRun, an_attempts_output_is_found_in_the_store_without_a_record_of_the_run) {
  kill_during("train");
  const auto state = folder.path() / "state", attempt = state / "work/run-1/train.1";
  core::write_file_atomically(folder.path() / "model", "made before");
  const auto stored = store::ArtifactStore(state / "artifacts").take(folder.path() / "model");
  note_taken(attempt, stored.digest.hex());
  far->steps["train"] = [](const orchestrators::Attempt&) {
    return orchestrators::AttemptResult{std::nullopt, 0, "fake"};
  };
  EXPECT_EQ(run({.resume = true, .run_id = "run-1"}).status, RunStatus::succeeded);
  EXPECT_THAT(far->joined, ElementsAre("train.1"));
  EXPECT_EQ(recorder.end_of("train").attempts, 1u);
  store::RunStore store(state);
  EXPECT_EQ(store.runs().steps("run-1").at(1).outputs.at(0).digest, stored.digest);
}

TEST_F(ResumedRun, a_note_of_content_that_the_store_lacks_is_not_an_output) {
  kill_during("train");
  note_taken(folder.path() / "state/work/run-1/train.1", std::string(64, '0'));
  far->steps["train"] = [](const orchestrators::Attempt&) {
    return orchestrators::AttemptResult{std::nullopt, 0, "fake"};
  };
  EXPECT_EQ(run({.resume = true, .run_id = "run-1"}).status, RunStatus::failed);
  EXPECT_EQ(recorder.end_of("train").failure->kind, FailureKind::missing_output);
}

TEST_F(ResumedRun, a_step_does_not_name_an_artifact_of_the_store_as_its_output) {
  kill_during("train");
  const auto state = folder.path() / "state", attempt = state / "work/run-1/train.1";
  core::write_file_atomically(folder.path() / "other", "of another step");
  const auto stored = store::ArtifactStore(state / "artifacts").take(folder.path() / "other");
  core::make_folders(attempt / "scratch");
  core::write_file_atomically(attempt / "scratch/.taken-out", taken_record(stored.digest.hex()));
  far->steps["train"] = [](const orchestrators::Attempt&) {
    return orchestrators::AttemptResult{std::nullopt, 0, "fake"};
  };
  EXPECT_EQ(run({.resume = true, .run_id = "run-1"}).status, RunStatus::failed);
  EXPECT_EQ(recorder.end_of("train").failure->kind, FailureKind::missing_output);
}

TEST_F(ResumedRun, an_output_of_an_attempt_that_was_begun_again_is_not_that_of_its_first_start) {
  kill_during("train");
  const auto state = folder.path() / "state", attempt = state / "work/run-1/train.1";
  core::write_file_atomically(folder.path() / "model", "made before");
  const auto stored = store::ArtifactStore(state / "artifacts").take(folder.path() / "model");
  note_taken(attempt, stored.digest.hex());
  far->steps["train"] = [](const orchestrators::Attempt& again) {
    core::remove_tree(again.scratch);  // As orchestrators do that find no job.
    core::make_folders(again.scratch);
    return orchestrators::AttemptResult{std::nullopt, 0, "fake"};
  };
  EXPECT_EQ(run({.resume = true, .run_id = "run-1"}).status, RunStatus::failed);
  EXPECT_EQ(recorder.end_of("train").failure->kind, FailureKind::missing_output);
}

TEST_F(ResumedRun, retries_that_were_used_stay_used) {
  pipeline.steps[1].retry = RetrySettings{.max_retries = 1};
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

TEST_F(ResumedRun, attempts_that_are_not_counted_use_no_retries) {
  pipeline.steps[1].settings->resources.memory = 100;
  pipeline.steps[1].retry->max_retries = 1;
  pipeline.steps[1].retry->max_infrastructure_retries = 1;
  pipeline.steps[1].retry->on_oom = {.max = 1000};
  kill_during("train");
  {
    store::RunStore store(folder.path() / "state");
    auto attempt = store.attempts().list("run-1", "train").at(0);
    const auto ends = [&](FailureKind kind, bool was_preempted) {
      auto ended = attempt;
      ended.ended = wall_now();
      ended.failure_kind = to_string(kind);
      ended.was_preempted = was_preempted;
      store.attempts().put(ended);
      ++attempt.number;
    };
    ends(FailureKind::infrastructure, true);
    ends(FailureKind::out_of_memory, false);
    attempt.usage.memory_limit = 200;
    store.attempts().put(attempt);
  }
  far->steps["train"] = [](const orchestrators::Attempt& attempt) {
    if (attempt.number == 3)
      return orchestrators::AttemptResult{
          Failure{FailureKind::infrastructure, "its node was lost", {}, {}}, std::nullopt, "fake"};
    return attempt.number == 4 ? fails_with(1) : writes(attempt, "train");
  };
  EXPECT_EQ(run({.resume = true, .run_id = "run-1"}).status, RunStatus::succeeded);
  EXPECT_THAT(far->joined, ElementsAre("train.3"));
  EXPECT_EQ(recorder.end_of("train").attempts, 5u);
}

TEST_F(ResumedRun, memory_that_was_raised_stays_raised) {
  pipeline.steps[1].settings->resources.memory = 100;
  pipeline.steps[1].retry->on_oom = {.max = 1000};
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
  for (const auto& attempt : store::RunStore(state).attempts().list("run-1", "train"))
    limits.push_back(attempt.usage.memory_limit);
  EXPECT_THAT(limits, ElementsAre(100U, 200U, 400U));
}

TEST_F(ResumedRun, a_run_that_still_runs_cannot_be_resumed) {
  kill_during("train");
  store::RunStore store(folder.path() / "state");
  auto record = *store.runs().find("run-1");
  record.driver.process = store::ProcessId::self();
  store.runs().resume(record);
  EXPECT_THROW(run({.resume = true, .run_id = "run-1"}), core::InputError);
}

TEST_F(ResumedRun, the_holder_of_the_lease_can_resume_a_run_recorded_as_running) {
  const store::LeaseId lease{"lab", "ml", "driver"};
  const auto status = [&] {
    return store::RunStore(folder.path() / "state").runs().find("run-1")->status;
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
  store::RunStore store(folder.path() / "state");
  EXPECT_EQ(store.runs().find("run-1")->driver.lease, lease);
}

}  // namespace
}  // namespace pipeline::engine
