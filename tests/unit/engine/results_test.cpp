#include "engine/cache/results.hpp"

#include <gtest/gtest.h>

#include "core/file.hpp"
#include "support/event_recorder.hpp"
#include "unit/engine/fake_orchestrator.hpp"

namespace pipeline::engine {
namespace {

class NoStore final : public RemoteCache {
 public:
  std::string name() const override { return "s3://team/pipe"; }
  async::Task<> check() override { co_return; }
  async::Task<std::optional<RemoteResult>> find(std::string, core::CancelSource*) override {
    co_return std::nullopt;
  }
  async::Task<> fetch(const RemoteOutput&, std::filesystem::path, core::CancelSource&) override {
    co_return;
  }
  void invalidate(const RemoteOutput&) override {}
  async::Task<> publish(store::CacheEntry, core::CancelSource&) override { co_return; }
  async::Task<store::PublishedName> find_name(std::string) override {
    co_return store::PublishedName{};
  }
  async::Task<> publish_as(std::string, store::PublishedVersion) override { co_return; }
};

class ResultsTest : public ::testing::Test {
 protected:
  ResultsTest() {
    step.name = "train";
    options.run_id = "now";
  }
  Results results() { return Results(context); }
  /// Which run's result the step is given, if `key` has been made by `run`.
  std::string given(const std::string& key, const std::string& run) {
    store.cache().add({key, run, step.name, {}}, pipeline.name, {});
    const auto entry = results().find_local(step, key);
    return entry ? entry->run : "none";
  }

  core::TemporaryFolder folder;
  PipelineSpec pipeline;
  StepSpec step;
  FakeOrchestrator orchestrator;
  orchestrators::Routes routes{orchestrator};
  store::RunStore store{folder.path()};
  store::ArtifactStore artifacts{folder.path() / "artifacts"};
  store::StatIndex stats{folder.path() / "stat-index"};
  const CodeProvider code;
  test::EventRecorder events;
  core::CancelSource user;
  asio::thread_pool pool{1};
  NoStore remote;
  EngineOptions options;
  asio::io_context loop;
  async::TaskGroup tasks{loop.get_executor()};
  const Services services{pipeline, routes, store, artifacts, stats, code};
  const RunContext context{services, options, events, user, pool, loop.get_executor(), tasks};
};

TEST_F(ResultsTest, a_result_of_a_run_here_is_given_to_all_runs) {
  EXPECT_FALSE(results().find_local(step, "a"));
  EXPECT_EQ(given("a", "earlier"), "earlier");
}

TEST_F(ResultsTest, a_step_without_cache_takes_no_result_not_even_its_own) {
  step.cache = false;
  EXPECT_EQ(given("a", "earlier"), "none");
  EXPECT_EQ(given("b", "now"), "none");
  step.cache = true;
  options.use_cache = false;
  EXPECT_EQ(given("c", "earlier"), "none");
}

TEST_F(ResultsTest, a_resumed_run_takes_its_own_results_whatever_else_may_be_reused) {
  options.resume = true;
  step.cache = false;
  EXPECT_EQ(given("a", "earlier"), "none");
  EXPECT_EQ(given("b", "now"), "now");
}

TEST_F(ResultsTest, others_are_asked_only_for_results_of_steps_not_begun_here) {
  EXPECT_FALSE(results().may_be_remote(step, false)) << "there is no store";
  options.remote_cache = &remote;
  EXPECT_TRUE(results().may_be_remote(step, false));
  EXPECT_FALSE(results().may_be_remote(step, true));
  step.cache = false;
  EXPECT_FALSE(results().may_be_remote(step, false));
  options.resume = true;
  EXPECT_TRUE(results().may_be_remote(step, false))
      << "the run's earlier driver, on another machine, may have made the result";
}

TEST_F(ResultsTest, others_are_given_cached_results_and_a_later_driver_all) {
  EXPECT_FALSE(results().shares_result(step));
  options.remote_cache = &remote;
  EXPECT_TRUE(results().shares_result(step));
  step.cache = false;
  EXPECT_FALSE(results().shares_result(step));
  options.wait_until_persisted = []() -> async::Task<> { co_return; };
  EXPECT_TRUE(results().shares_result(step));
}

TEST_F(ResultsTest, only_results_that_this_run_made_before_its_end_may_be_unsent) {
  options.remote_cache = &remote;
  const store::CacheEntry own{"a", "now", "train", {}}, other{"a", "earlier", "train", {}};
  EXPECT_FALSE(results().may_be_unsent(step, own));
  options.resume = true;
  EXPECT_TRUE(results().may_be_unsent(step, own));
  EXPECT_FALSE(results().may_be_unsent(step, other));
}

}  // namespace
}  // namespace pipeline::engine
