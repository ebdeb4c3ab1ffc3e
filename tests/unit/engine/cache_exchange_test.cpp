// Runs on several machines that share results: each has a state of its own, and the store is a map
// of the test's.
#include "engine/cache/cache_exchange.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "engine/plan.hpp"
#include "engine/run.hpp"
#include "support/event_recorder.hpp"
#include "support/run_task.hpp"
#include "unit/engine/fake_orchestrator.hpp"

namespace pipeline::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class Shelf final : public RemoteCache {
 public:
  std::string name() const override { return "s3://team/pipe"; }

  async::Task<> check() override {
    ++checks;
    fail_if(is_closed);
    co_return;
  }

  async::Task<std::optional<RemoteResult>> find(std::string key, core::CancelSource*) override {
    ++asked;
    max_at_once = std::max(max_at_once, ++open_);
    co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
    --open_;
    fail_if(is_gone);
    if (is_damaged) throw DamagedCacheEntry("the record makes no sense");
    const auto found = results.find(key);
    std::optional<RemoteResult> result;
    if (found != results.end()) result = found->second;
    co_return result;
  }

  async::Task<> fetch(const RemoteOutput& output, std::filesystem::path to,
                      core::CancelSource&) override {
    fail_if(is_gone);
    fetched.push_back(output.record.name);
    core::write_file_atomically(to, contents.at(output.record.digest));
    co_return;
  }

  void invalidate(const RemoteOutput& output) override { contents.erase(output.record.digest); }

  async::Task<> publish(store::CacheEntry entry, core::CancelSource&) override {
    co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
    if (entry.step == damaged_step) throw DamagedCacheEntry("cannot replace the record");
    if (!refuses.empty())
      throw core::EnvironmentError("cannot write to the store: " + refuses, {"make room"});
    published.push_back(entry.step);
    RemoteResult result;
    result.run = entry.run;
    for (const auto& output : entry.outputs) {
      contents.try_emplace(output.digest, core::read_file(artifacts->path(output.digest)));
      result.outputs.push_back({output, false});
    }
    results[entry.key] = result;
  }

  async::Task<store::PublishedName> find_name(std::string name) override {
    fail_if(is_gone);
    co_return store::PublishedName{std::move(name), {}, {}};
  }
  async::Task<> publish_as(std::string, store::PublishedVersion) override { co_return; }

  std::map<std::string, RemoteResult> results;
  std::map<core::Digest, std::string> contents;
  std::vector<std::string> published, fetched;
  bool is_closed = false, is_gone = false, is_damaged = false;
  std::string refuses, damaged_step;
  int checks = 0, asked = 0, max_at_once = 0;
  store::ArtifactStore* artifacts = nullptr;  ///< Artifacts of the machine that runs.

 private:
  static void fail_if(bool fails) {
    if (fails) throw core::EnvironmentError("the store does not answer");
  }
  int open_ = 0;
};

StepSpec written_step(std::string name, std::vector<std::string> from = {}) {
  StepSpec spec;
  spec.name = name;
  spec.command.arguments = {Template{{std::string("do-" + name)}}};
  spec.outputs = {{"out", "out"}};
  for (const auto& other : from) spec.inputs.push_back({other, {{other, "out"}}});
  return spec;
}

class SharingTest : public ::testing::Test {
 protected:
  SharingTest() {
    pipeline.steps = {written_step("load"), written_step("train", {"load"}),
                      written_step("plot", {"train"})};
  }

  /// All that the machine knows is in its folder.
  template <class Do>
  auto on(const std::string& machine, EngineOptions options, Do work) {
    asio::io_context loop;
    const auto state = folder.path() / machine;
    store::RunStore store(state);
    store::ArtifactStore artifacts(state / "artifacts");
    store::StatIndex stats(state / "stat-index");
    const std::vector<store::TreeEntry> none;
    const CodeProvider code{
        [&](const StepSpec&) -> const std::vector<store::TreeEntry>& { return none; }, {}};
    orchestrator.order.clear();
    shelf.artifacts = &artifacts;
    shelf.asked = shelf.checks = 0;
    if (is_shared) options.remote_cache = &shelf;
    if (options.run_id.empty()) options.run_id = machine + "-" + std::to_string(++count);
    return work(loop, store, artifacts, stats, code, options);
  }
  RunSummary run(const std::string& machine, EngineOptions options = {}) {
    events.events.clear();
    return on(machine, options,
              [&](auto& loop, auto& store, auto& artifacts, auto& stats, auto& code, auto& how) {
                return test::run_task(
                    loop, engine::run({pipeline, routes, store, artifacts, stats, code}, events,
                                      cancel, how));
              });
  }
  std::vector<StepPlan> plan(const std::string& machine, EngineOptions options = {}) {
    return on(machine, options,
              [&](auto& loop, auto& store, auto& artifacts, auto& stats, auto& code, auto& how) {
                return test::run_task(
                    loop, engine::plan({pipeline, routes, store, artifacts, stats, code}, how));
              });
  }
  std::string artifact(const std::string& machine, const std::string& name) {
    store::RunStore store(folder.path() / machine);
    const store::ArtifactStore artifacts(folder.path() / machine / "artifacts");
    for (const auto& record : store.runs().steps(store.runs().find("latest")->id))
      if (record.name == name) return core::read_file(artifacts.path(record.outputs.at(0).digest));
    return "no such step";
  }
  std::vector<std::string> notices() const {
    std::vector<std::string> texts;
    for (const auto& notice : events.of<event::Notice>()) texts.push_back(notice.text);
    return texts;
  }

  core::TemporaryFolder folder;
  PipelineSpec pipeline{.name = "test"};
  FakeOrchestrator orchestrator;
  orchestrators::Routes routes{orchestrator};
  Shelf shelf;
  test::EventRecorder events;
  core::CancelSource cancel;
  bool is_shared = true;
  int count = 0;
};

TEST_F(SharingTest, a_step_whose_result_another_machine_has_sent_does_not_run) {
  EXPECT_EQ(run("here").succeeded, 3u);
  EXPECT_THAT(shelf.published, UnorderedElementsAre("load", "train", "plot"));
  const auto builds = orchestrator.builds;
  EXPECT_EQ(run("there").cached, 3u);
  EXPECT_THAT(orchestrator.order, IsEmpty());
  EXPECT_EQ(orchestrator.builds, builds);
  EXPECT_EQ(shelf.asked, 3);
  EXPECT_EQ(artifact("there", "plot"), "plot");
  EXPECT_EQ(events.of<event::StepFinished>().at(0).reused_from, "s3://team/pipe, run here-1");
  EXPECT_EQ(shelf.published.size(), 3u) << "downloaded results are not uploaded again";
  EXPECT_EQ(run("there").cached, 3u);
  EXPECT_EQ(shelf.asked + shelf.checks, 0) << "the results are on this machine by now";
}

TEST_F(SharingTest, a_result_that_cannot_be_sent_keeps_no_other_back) {
  shelf.damaged_step = "load";
  EXPECT_EQ(run("here").succeeded, 3u);
  EXPECT_THAT(shelf.published, UnorderedElementsAre("train", "plot"));
  EXPECT_THAT(notices(), ElementsAre(HasSubstr("lacks the results of 'load': ")));
}

TEST_F(SharingTest, outputs_left_outside_stay_until_they_are_shared_and_recorded) {
  pipeline.steps = {written_step("load")};
  std::vector<std::string> calls;
  for (const bool fails : {false, true}) {
    orchestrator.steps["load"] = [&](const orchestrators::Attempt& attempt) {
      auto result = fails ? fails_with(1) : writes(attempt, "text");
      result.cleanup = [&] { calls.push_back("let go"); };
      return result;
    };
    EngineOptions options;
    options.wait_until_persisted = [&]() -> async::Task<> {
      calls.push_back(std::to_string(shelf.published.size()) + " shared");
      co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
      calls.push_back("safe");
    };
    options.use_cache = false;
    run("here", options);
  }
  EXPECT_THAT(calls, ElementsAre("1 shared", "safe", "let go", "1 shared", "safe", "let go"));
}

TEST_F(SharingTest, a_driver_without_files_of_the_last_one_takes_the_results_of_the_run) {
  pipeline.steps[0].cache = false;
  EngineOptions options;
  options.run_id = "r";
  options.wait_until_persisted = []() -> async::Task<> { co_return; };
  run("here", options);
  store::RunStore(folder.path() / "there").import_run(store::RunStore(folder.path() / "here"), "r");
  options.resume = true;
  EXPECT_EQ(run("there", options).cached, 3u);
  EXPECT_THAT(orchestrator.order, IsEmpty());
  store::RunStore there(folder.path() / "there");
  for (const auto& record : there.runs().steps("r")) {
    EXPECT_EQ(record.status, StepStatus::succeeded) << "the record is of the same run";
    EXPECT_EQ(record.reused_from, "");
  }
  EXPECT_EQ(artifact("there", "plot"), "plot");
  options = {};
  run("elsewhere", options);
  EXPECT_THAT(orchestrator.order, ElementsAre("load"))
      << "other runs do not take the result of a step without cache";
}

TEST_F(SharingTest, only_changed_steps_run_and_the_rest_comes_from_others) {
  run("here");
  pipeline.steps[1].parameters["c"] = 2;
  const auto summary = run("there");
  EXPECT_EQ(summary.cached, 2u) << "train writes what it wrote before";
  EXPECT_THAT(orchestrator.order, ElementsAre("train"));
  EXPECT_EQ(shelf.published.back(), "train");
}

TEST_F(SharingTest, all_results_are_asked_for_side_by_side) {
  pipeline.steps.clear();
  for (int i = 0; i < 40; ++i) pipeline.steps.push_back(written_step("s" + std::to_string(i)));
  run("here");
  EXPECT_GT(shelf.max_at_once, 4);
  EXPECT_LE(shelf.max_at_once, 16);
  shelf.max_at_once = 0;
  plan("there");
  EXPECT_EQ(shelf.asked, 40);
  EXPECT_GT(shelf.max_at_once, 4);
  EXPECT_LE(shelf.max_at_once, 32);
}

TEST_F(SharingTest, a_plan_says_what_the_run_then_does) {
  run("here");
  pipeline.steps[2].parameters["colour"] = "red";
  const auto plans = plan("there");
  EXPECT_EQ(plans[1].action, StepPlan::Action::reuse);
  EXPECT_EQ(plans[1].reused_from, "s3://team/pipe, run here-1");
  EXPECT_THAT(*plans[1].changes, IsEmpty());
  EXPECT_EQ(plans[2].action, StepPlan::Action::run);
  EXPECT_EQ(shelf.asked, 3);
  EXPECT_EQ(shelf.checks, 0);
  EXPECT_THAT(shelf.fetched, IsEmpty());
  run("there");
  EXPECT_THAT(orchestrator.order, ElementsAre("plot"));
}

TEST_F(SharingTest, without_the_cache_no_result_is_asked_for_and_all_are_sent) {
  run("here");
  shelf.published.clear();
  EXPECT_EQ(run("there", {.use_cache = false}).succeeded, 3u);
  EXPECT_EQ(shelf.asked, 0);
  EXPECT_EQ(shelf.published.size(), 3u);
}

TEST_F(SharingTest, a_step_that_is_not_cached_neither_asks_nor_sends) {
  for (auto& each : pipeline.steps) each.cache = false;
  EXPECT_EQ(run("here").succeeded, 3u);
  EXPECT_EQ(shelf.asked + shelf.checks, 0);
  EXPECT_THAT(shelf.published, IsEmpty());
}

TEST_F(SharingTest, a_store_that_cannot_be_reached_is_reported_before_the_run) {
  shelf.is_closed = true;
  EXPECT_THROW(run("here"), core::EnvironmentError);
  EXPECT_THAT(orchestrator.order, IsEmpty());
  EXPECT_FALSE(store::RunStore(folder.path() / "here").runs().find("latest"));
}

TEST_F(SharingTest, a_store_that_goes_away_costs_no_step) {
  run("here");
  shelf.is_gone = true;
  shelf.refuses = "it is full";
  EXPECT_EQ(run("there").succeeded, 3u);
  EXPECT_THAT(
      notices(),
      ElementsAre(
          HasSubstr("results of other machines cannot be reused: the store does not answer"),
          "s3://team/pipe lacks the results of 'load', 'train', 'plot': cannot write to the "
          "store: it is full; make room. Other machines run these steps again, until `pipe run "
          "--no-cache` here has shared the results"));
  EXPECT_EQ(shelf.asked, 1) << "a store that does not answer is not asked again";
}

TEST_F(SharingTest, a_damaged_output_is_made_again_and_replaced) {
  run("here");
  for (auto& [digest, content] : shelf.contents)
    if (content == "train") content = "something else";
  EXPECT_EQ(run("there").succeeded, 1u);
  EXPECT_THAT(orchestrator.order, ElementsAre("train"));
  EXPECT_THAT(notices(), ElementsAre(HasSubstr("the output 'out' in s3://team/pipe is damaged")));
  EXPECT_EQ(artifact("there", "train"), "train");
  EXPECT_EQ(run("elsewhere").cached, 3u);
  EXPECT_THAT(notices(), IsEmpty());
}

TEST_F(SharingTest, an_invalid_record_counts_as_missing) {
  run("here");
  for (auto& [key, result] : shelf.results) result.outputs[0].record.name = "../../out";
  EXPECT_EQ(run("there").succeeded, 3u);
  EXPECT_THAT(notices(), ::testing::Each(HasSubstr("has no output 'out': the step runs again")));
  EXPECT_EQ(plan("elsewhere")[0].action, StepPlan::Action::reuse)
      << "the records were written anew";
  shelf.is_damaged = true;
  EXPECT_EQ(plan("beyond")[0].action, StepPlan::Action::run);
  EXPECT_EQ(run("beyond").succeeded, 3u);
}

TEST_F(SharingTest, results_that_were_removed_here_are_fetched_again) {
  run("here");
  {
    store::RunStore store(folder.path() / "here");
    store::ArtifactStore artifacts(folder.path() / "here" / "artifacts");
    store.remove_run("here-1", false);
    artifacts.collect([](const core::Digest&) { return false; });
  }
  EXPECT_EQ(run("here").cached, 3u);
  EXPECT_THAT(orchestrator.order, IsEmpty());
  EXPECT_EQ(artifact("here", "plot"), "plot");
}

TEST_F(SharingTest, a_resumed_run_sends_its_results_that_were_not_sent) {
  is_shared = false;
  run("here");
  EXPECT_THAT(shelf.published, IsEmpty());
  is_shared = true;
  EXPECT_EQ(run("here", {.resume = true, .run_id = "here-1"}).cached, 3u);
  EXPECT_THAT(shelf.published, UnorderedElementsAre("load", "train", "plot"));
  EXPECT_EQ(run("there").cached, 3u);
}

TEST_F(SharingTest, steps_whose_environment_is_known_only_once_it_is_made_ask_then) {
  orchestrator.known_before_build = false;
  run("here");
  orchestrator = FakeOrchestrator();  // another machine's
  orchestrator.known_before_build = false;
  EXPECT_EQ(run("there").cached, 3u);
  EXPECT_THAT(orchestrator.order, IsEmpty());
}

TEST_F(SharingTest, machines_whose_indexes_gave_different_packages_share_no_key) {
  orchestrator.packages_of["image"] = "numpy 1.26.4";
  EXPECT_EQ(run("here").succeeded, 3u);
  orchestrator = FakeOrchestrator();  // another machine's
  orchestrator.packages_of["image"] = "numpy 2.0.0";
  EXPECT_EQ(plan("there")[0].action, StepPlan::Action::run);
  EXPECT_EQ(run("there").succeeded, 3u);
  EXPECT_EQ(run("there").cached, 3u);
  EXPECT_EQ(shelf.asked + shelf.checks, 0) << "the results are on this machine by now";
  EXPECT_EQ(shelf.results.size(), 6u);
  orchestrator = FakeOrchestrator();  // a third one's
  orchestrator.packages_of["image"] = "numpy 1.26.4";
  EXPECT_EQ(run("elsewhere").cached, 3u);
  EXPECT_EQ(events.of<event::StepFinished>().at(0).reused_from, "s3://team/pipe, run here-1");
}

TEST_F(SharingTest, without_a_store_nobody_lists_packages) {
  is_shared = false;
  orchestrator.packages_of["image"] = "numpy 1.26.4";
  run("here");
  orchestrator.packages_of["image"] = "numpy 2.0.0";
  EXPECT_EQ(run("here").cached, 3u);
}

TEST_F(SharingTest, an_environment_is_not_made_for_a_step_whose_result_others_have) {
  pipeline.steps[0].settings->docker.parent_image = "large";
  run("here");
  EXPECT_EQ(orchestrator.builds, 2);
  pipeline.steps[1].parameters["c"] = 2;
  orchestrator = FakeOrchestrator();  // another machine's
  run("there");
  EXPECT_THAT(orchestrator.order, ElementsAre("train"));
  EXPECT_EQ(orchestrator.builds, 1);
}

}  // namespace
}  // namespace pipeline::engine
