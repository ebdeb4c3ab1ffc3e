#include "engine/run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <set>

#include "engine/cache/run_fingerprint.hpp"
#include "engine/plan.hpp"
#include "unit/engine/run_fixture.hpp"

namespace pipeline::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

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

TEST_F(RunTest, more_reused_steps_than_are_persisted_at_once_each_end_once) {
  const std::size_t makers = 1'100;
  for (std::size_t i = 0; i < makers; ++i) pipeline.steps.push_back(step("s" + std::to_string(i)));
  pipeline.steps.push_back(step("last", {"s1", "s1099"}));
  run();
  EXPECT_EQ(run().cached, makers + 1);
  std::set<std::string> ends;
  for (const auto& finished : recorder.of<event::StepFinished>()) ends.insert(finished.step);
  EXPECT_EQ(ends.size(), makers + 1);
  EXPECT_EQ(recorder.of<event::StepFinished>().size(), makers + 1);
  EXPECT_EQ(store::RunStore(folder.path() / "state").runs().steps("run-2").size(), makers + 1);
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

TEST_F(RunTest, step_ends_before_those_that_are_reused_after_it) {
  pipeline.steps = {step("a"), step("b", {"a"})};
  pipeline.steps[0].cache = false;
  run();
  run();
  std::vector<std::string> ends;
  for (const auto& finished : recorder.of<event::StepFinished>()) ends.push_back(finished.step);
  EXPECT_THAT(ends, ElementsAre("a", "b"));
  EXPECT_EQ(status_of("b"), StepStatus::cached);
}

TEST_F(RunTest, edit_reruns_just_the_steps_that_use_it) {
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

TEST_F(RunTest, code_that_changes_before_its_step_begins_is_in_its_key_as_it_ran) {
  pipeline.steps = {step("first"), step("second")};
  pipeline.steps[1].after = {"first"};
  sources["second"] = {{"second.py", "old"}};
  orchestrator.steps["first"] = [&](const orchestrators::Attempt& attempt) {
    sources["second"]["second.py"] = "new";
    return writes(attempt, "first");
  };
  orchestrator.steps["second"] = [](const orchestrators::Attempt& attempt) {
    return writes(attempt, core::read_file(attempt.code / "second.py"));
  };
  run();
  EXPECT_EQ(artifact("run-1", "second"), "new");
  EXPECT_THAT(
      recorder.of<event::Notice>(),
      ::testing::Contains(::testing::Field(&event::Notice::text,
                                           "ran code that has changed since the run began: code "
                                           "second.py changed")));
  run();
  EXPECT_EQ(status_of("second"), StepStatus::cached);
  sources["second"]["second.py"] = "old";
  run();
  EXPECT_EQ(status_of("second"), StepStatus::succeeded);
  EXPECT_EQ(artifact("run-3", "second"), "old");
}

TEST_F(RunTest, of_a_notebook_only_the_code_cells_are_in_the_key) {
  const auto notebook = [](const std::string& source, const std::string& output) {
    return R"({"cells": [{"cell_type": "markdown", "source": "# Title"}, {"cell_type": "code",
      "execution_count": )" +
           std::to_string(output.size()) + R"(, "source": ["import numpy\n", ")" + source +
           R"("], "outputs": [")" + output + R"("]}], "metadata": {"kernelspec": {"name": ")" +
           output + R"("}}, "nbformat": 4})";
  };
  pipeline.steps = {step("report")};
  sources["report"]["report.ipynb"] = notebook("x = 1", "a");
  run();
  sources["report"]["report.ipynb"] = notebook("x = 1", "bbb");
  run();
  EXPECT_EQ(status_of("report"), StepStatus::cached);
  sources["report"]["report.ipynb"] = notebook("x = 2", "bbb");
  run();
  EXPECT_EQ(status_of("report"), StepStatus::succeeded);
  run();
  EXPECT_EQ(status_of("report"), StepStatus::cached);
  sources["report"]["report.ipynb"] = "{ no notebook";
  run();
  EXPECT_EQ(status_of("report"), StepStatus::succeeded);
}

TEST_F(RunTest, source_that_changes_while_the_run_is_checked_is_noticed_by_the_next_one) {
  const auto file = folder.path() / "pipeline.yaml";
  core::write_file_atomically(file, "one");
  // A file that has just changed is never trusted, so for the run it is an hour later.
  const auto later = [] { return std::chrono::system_clock::now() + std::chrono::hours(1); };
  pipeline.steps = {step("a")};
  const auto may_be_repeated = [&] {
    asio::io_context loop;
    store::RunStore store(folder.path() / "state");
    store::ArtifactStore artifacts(folder.path() / "state" / "artifacts");
    bool may = false;
    asio::co_spawn(loop,
                   reuse_by_fingerprint(routes, store, artifacts, recorder,
                                        {.run_id = "again-" + std::to_string(++count),
                                         .identity = "asked",
                                         .reports_reused_steps = false}),
                   [&](std::exception_ptr error, const std::optional<RunSummary>& summary) {
                     may = !error && summary.has_value();
                   });
    loop.run();
    return may;
  };
  run({.identity = "asked", .sources = {file}, .now = later});
  EXPECT_TRUE(may_be_repeated());
  orchestrator.when_checked = [&] { core::write_file_atomically(file, "two"); };
  run({.identity = "asked", .sources = {file}, .now = later});
  EXPECT_FALSE(may_be_repeated());
}

TEST_F(RunTest, step_with_the_same_output_again_spares_those_behind_it) {
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
    store::RunStore store(folder.path() / "state");
    const store::ArtifactStore artifacts(folder.path() / "state" / "artifacts");
    const auto path = artifacts.path(store.runs().steps("run-1").at(0).outputs.at(0).digest);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    std::ofstream(path) << "something else";
  }
  run();
  EXPECT_EQ(orchestrator.started["a"], 2);
  EXPECT_EQ(artifact("run-2", "a"), "a");
}

class DamagedInputTest : public RunTest {
 protected:
  DamagedInputTest() {
    pipeline.steps = {step("load"), step("train", {"load"}), step("plot", {"load"})};
    for (const std::string name : {"train", "plot"})
      orchestrator.steps[name] = [](const orchestrators::Attempt& attempt) {
        return writes(attempt, "from " + core::read_file(attempt.inputs.at(0).path));
      };
  }
  /// Changes a step's output, but neither its size nor its times, so that it still looks whole.
  void damage(const std::string& run_id, const std::string& name) {
    store::RunStore store(folder.path() / "state");
    const store::ArtifactStore artifacts(folder.path() / "state" / "artifacts");
    for (const auto& record : store.runs().steps(run_id)) {
      if (record.name != name) continue;
      const auto path = artifacts.path(record.outputs.at(0).digest);
      const auto time = std::filesystem::last_write_time(path);
      std::filesystem::permissions(path, std::filesystem::perms(0644));
      auto text = core::read_file(path);
      text[0] ^= 1;
      std::ofstream(path) << text;
      std::filesystem::last_write_time(path, time);
      std::filesystem::permissions(path, std::filesystem::perms(0444));
    }
  }
};

TEST_F(DamagedInputTest, step_that_made_it_runs_again_and_then_those_that_take_it) {
  run();
  damage("run-1", "load");
  sources["train"] = {{"train.py", "changed"}};
  sources["plot"] = {{"plot.py", "changed"}};
  const auto summary = run();
  EXPECT_EQ(summary.status, RunStatus::succeeded);
  EXPECT_EQ(summary.succeeded, 3u);
  EXPECT_EQ(summary.cached, 0u);
  EXPECT_EQ(orchestrator.started["load"], 2) << "one further attempt serves both steps";
  EXPECT_EQ(status_of("train"), StepStatus::succeeded);
  EXPECT_EQ(artifact("run-2", "load"), "load");
  EXPECT_EQ(artifact("run-2", "train"), "from load");
  EXPECT_EQ(artifact("run-2", "plot"), "from load");
  EXPECT_EQ(run().cached, 3u);
}

TEST_F(DamagedInputTest, step_takes_what_is_made_instead_though_it_differs) {
  run();
  damage("run-1", "load");
  orchestrator.steps["load"] = [](const orchestrators::Attempt& attempt) {
    return writes(attempt, "another");
  };
  sources["train"] = {{"train.py", "changed"}};
  EXPECT_EQ(run().status, RunStatus::succeeded);
  EXPECT_EQ(artifact("run-2", "train"), "from another");
}

TEST_F(DamagedInputTest, step_that_waits_meanwhile_has_a_key_of_what_it_then_reads) {
  run();
  damage("run-1", "load");
  orchestrator.steps["load"] = [](const orchestrators::Attempt& attempt) {
    return writes(attempt, "another");
  };
  pipeline.steps[1].settings->docker.parent_image = "slow";
  orchestrator.slow_images = {"slow"};
  sources["plot"] = {{"plot.py", "changed"}};
  EXPECT_EQ(run().status, RunStatus::succeeded);
  EXPECT_EQ(artifact("run-2", "train"), "from another");
  EXPECT_EQ(run().cached, 3u) << "'train' is found by the content that it has read";
}

TEST_F(DamagedInputTest, step_fails_if_its_input_cannot_be_made_again) {
  run();
  damage("run-1", "load");
  orchestrator.steps["load"] = [](const orchestrators::Attempt&) { return fails_with(4); };
  sources["train"] = {{"train.py", "changed"}};
  const auto summary = run();
  EXPECT_EQ(summary.status, RunStatus::failed);
  EXPECT_EQ(summary.failed, 2u) << "the step that made it, and the one that takes it";
  EXPECT_THAT(
      recorder.end_of("train").failure->message,
      ::testing::HasSubstr(
          "is damaged: its content is not what 'load' made, and 'load' could not make it again"));
  EXPECT_EQ(orchestrator.started["train"], 1);
}

TEST_F(DamagedInputTest, step_that_ran_when_another_found_its_large_inputs_damaged_runs_again) {
  pipeline.steps.push_back(step("large"));
  pipeline.steps.push_back(step("first"));
  pipeline.steps[2].after = {"first"};  // So that 'train' has begun when 'plot' finds the damage.
  orchestrator.steps["large"] = [](const orchestrators::Attempt& attempt) {
    return writes(attempt, std::string(1 << 20, 'x'));
  };
  pipeline.steps[1].inputs = {{"large", {{"large", "out"}}}, {"load", {{"load", "out"}}}};
  run();
  damage("run-1", "load");
  orchestrator.begins_after["first"] = std::chrono::milliseconds(200);
  orchestrator.begins_after["train"] = std::chrono::milliseconds(600);
  sources["first"] = {{"first.py", "changed"}};
  sources["train"] = {{"train.py", "changed"}};
  sources["plot"] = {{"plot.py", "changed"}};
  EXPECT_EQ(run({.jobs = 4}).status, RunStatus::succeeded);
  EXPECT_EQ(orchestrator.started["load"], 2);
  EXPECT_EQ(orchestrator.started["train"], 3)
      << "the first attempt may have read the damaged input";
}

TEST_F(DamagedInputTest, attempt_whose_input_another_has_changed_is_cleaned_up_and_runs_again) {
  pipeline.steps = {step("load"), step("train", {"load"}), step("bad", {"load"})};
  pipeline.execution_mode = ExecutionMode::continue_on_failure;
  int cleanups = 0;
  orchestrator.steps["train"] = [&](const orchestrators::Attempt& attempt) {
    auto result = writes(attempt, "train");
    result.cleanup = [&] { ++cleanups; };
    return result;
  };
  orchestrator.steps["bad"] = [](const orchestrators::Attempt& attempt) {
    const auto& input = attempt.inputs.at(0).path;
    std::filesystem::permissions(input, std::filesystem::perms(0644));
    std::ofstream(input) << "changed";
    return writes(attempt, "bad");
  };
  orchestrator.begins_after["bad"] = std::chrono::milliseconds(100);
  orchestrator.begins_after["train"] = std::chrono::milliseconds(400);
  run({.jobs = 2});
  EXPECT_EQ(status_of("bad"), StepStatus::failed);
  EXPECT_EQ(status_of("train"), StepStatus::succeeded);
  EXPECT_EQ(orchestrator.started["train"], 2);
  EXPECT_EQ(cleanups, 2) << "of both attempts";
}

TEST_F(DamagedInputTest, an_input_that_is_gone_when_the_step_begins_is_made_again) {
  std::filesystem::path taken;
  orchestrator.steps["train"] = [&](const orchestrators::Attempt& attempt) {
    taken = attempt.inputs.at(0).path;  // From now on the run does not read it again.
    return writes(attempt, "train");
  };
  pipeline.steps.push_back(step("thief"));
  pipeline.steps[3].after = {"train"};
  pipeline.steps[2].after = {"thief"};
  orchestrator.steps["thief"] = [&](const orchestrators::Attempt& attempt) {
    std::filesystem::remove(taken);
    return writes(attempt, "thief");
  };
  EXPECT_EQ(run().status, RunStatus::succeeded);
  EXPECT_EQ(orchestrator.started["load"], 2);
  EXPECT_EQ(artifact("run-1", "plot"), "from load");
}

TEST_F(DamagedInputTest, published_version_that_is_damaged_is_not_used) {
  pipeline.steps = {step("load")};
  pipeline.steps[0].publish = StringMap{{"out", "production"}};
  run();
  damage("run-1", "load");
  InputSpec model;
  model.name = "model";
  model.data = DataSpec{.artifact = "production"};
  pipeline.steps = {step("train")};
  pipeline.steps[0].inputs = {model};
  EXPECT_EQ(run().status, RunStatus::failed);
  EXPECT_THAT(recorder.end_of("train").failure->message,
              ::testing::HasSubstr("artifact:production, version 1, is missing or damaged here"));
  EXPECT_EQ(orchestrator.started["train"], 0);
}

TEST_F(RunTest, removal_of_a_temporary_output_spares_an_equal_output_that_is_being_stored) {
  pipeline.steps = {step("mark"), step("reader", {"mark"}), step("both")};
  pipeline.steps[0].outputs[0].temp = true;
  pipeline.steps[2].outputs.push_back({"large", "large"});
  orchestrator.steps["mark"] = [](const orchestrators::Attempt& attempt) {
    return writes(attempt, "same");
  };
  orchestrator.steps["both"] = [](const orchestrators::Attempt& attempt) {
    const auto result = writes(attempt, "same");
    // Reading it takes longer than until the removal.
    std::filesystem::resize_file(attempt.outputs / "large", std::uintmax_t{1} << 29);
    return result;
  };
  EXPECT_EQ(run().status, RunStatus::succeeded);
  EXPECT_EQ(artifact("run-1", "both"), "same");
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

TEST_F(RunTest, environment_known_only_once_it_is_made_still_leads_to_reuse) {
  orchestrator.known_before_build = false;
  pipeline.steps = {step("a"), step("b", {"a"})};
  run();
  EXPECT_EQ(run().cached, 2u);
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

class PlanTest : public RunTest {
 protected:
  std::vector<StepPlan> plan() {
    asio::io_context loop;
    store::RunStore store(folder.path() / "state");
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
    asio::co_spawn(loop, engine::plan({pipeline, routes, store, artifacts, stats, code}, {}),
                   [&](std::exception_ptr error, std::vector<StepPlan> result) {
                     if (error) std::rethrow_exception(error);
                     plans = std::move(result);
                   });
    loop.run();
    return plans;
  }
};

TEST_F(PlanTest, plan_knows_the_last_try_of_a_step_that_the_newest_run_left_out) {
  pipeline.steps = {step("a"), step("b"), step("c")};
  orchestrator.steps["b"] = [](const orchestrators::Attempt&) { return fails_with(1); };
  run();
  run({.force = {"a"}, .only_step = "a"});
  pipeline.steps.push_back(step("new"));
  const auto plans = plan();
  EXPECT_EQ(plans[0].action, StepPlan::Action::reuse);
  EXPECT_THAT(*plans[1].changes, ElementsAre("failed in run run-1"));
  EXPECT_EQ(plans[2].action, StepPlan::Action::reuse);
  EXPECT_THAT(*plans[3].changes, ElementsAre("never run before"));
}

TEST_F(PlanTest, plan_says_what_will_be_reused_and_what_changed) {
  pipeline.steps = {step("load"), step("train", {"load"}), step("report", {"train"})};
  sources["train"] = {{"train.py", "1"}};
  pipeline.steps[1].parameters["c"] = 1.0;
  auto plans = plan();
  EXPECT_EQ(plans[0].action, StepPlan::Action::run);
  EXPECT_THAT(*plans[0].changes, ElementsAre("never run before"));
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
  EXPECT_THAT(*plans[1].changes, ElementsAre("code train.py changed", "parameter c: 1.0 -> 0.5"));
  EXPECT_EQ(plans[2].action, StepPlan::Action::depends);
}

TEST_F(PlanTest, plan_of_rounds_whose_condition_fails_says_why) {
  auto fit = step("fit");
  fit.repeat = RepeatSpec{.of = "fit", .until = {}, .max = 3};
  fit.when = Condition{.text = "${params.n} > 1", .parameters = {{"params.n", "many"}}};
  pipeline.steps = {fit};
  EXPECT_THAT(*plan()[0].changes,
              ElementsAre("rounds, 3 at most", StartsWith("fails: when: ${params.n} > 1: ")));
}

TEST_F(PlanTest, plan_has_no_side_effect) {
  pipeline.steps = {step("a")};
  plan();
  EXPECT_EQ(orchestrator.builds, 0);
  EXPECT_TRUE(orchestrator.order.empty());
}

}  // namespace
}  // namespace pipeline::engine
