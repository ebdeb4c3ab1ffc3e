#include "engine/cache/run_fingerprint.hpp"

#include <gtest/gtest.h>

#include <chrono>

#include "unit/engine/fake_orchestrator.hpp"

namespace pipeline::engine {
namespace {

class Silent final : public EventSink {
 public:
  void emit(const Event& event) override {
    steps += std::holds_alternative<event::StepFinished>(event);
  }
  int steps = 0;
};

class MemoTest : public ::testing::Test {
 protected:
  MemoTest() : store(folder.path() / "state"), artifacts(folder.path() / "state" / "artifacts") {
    core::write_file_atomically(file, "name: x");
    store.runs().add({.id = "run-1",
                      .pipeline = "x",
                      .orchestrator = "fake",
                      .status = RunStatus::succeeded,
                      .steps = 1});
    const auto output = folder.path() / "output";
    core::write_file_atomically(output, "made");
    artifact = artifacts.take(output).digest;
    store::StepRecord step{.run = "run-1", .name = "a", .status = StepStatus::succeeded};
    step.outputs = {{"out", "out", artifact, false, 4}};
    store.runs().put_step(step);
  }

  /// No file has just changed.
  static std::chrono::system_clock::time_point later() {
    return std::chrono::system_clock::now() + std::chrono::hours(1);
  }

  void remember(RunFingerprint fingerprint = RunFingerprint("asked", later),
                const std::vector<std::string>& tags = {}) {
    fingerprint.add_path(file);
    fingerprint.add_path(folder.path() / "nothing here");
    fingerprint.add_variable("MEMO_TEST_VARIABLE");
    fingerprint.add_environment("fake image");
    fingerprint.add_artifact(artifact);
    fingerprint.save(store, "run-1", 1, 0, tags);
  }

  bool holds(const std::string& identity = "asked") {
    asio::io_context loop;
    std::optional<RunSummary> summary;
    asio::co_spawn(
        loop,
        reuse_by_fingerprint(routes, store, artifacts, events,
                             {.run_id = "again-" + std::to_string(++count), .identity = identity}),
        [&](std::exception_ptr error, std::optional<RunSummary> result) {
          if (error) std::rethrow_exception(error);
          summary = std::move(result);
        });
    loop.run();
    if (summary) {
      EXPECT_EQ(summary->cached, 1u);
    }
    return summary.has_value();
  }

  core::TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "pipeline.yaml";
  store::RunStore store;
  store::ArtifactStore artifacts;
  FakeOrchestrator orchestrator;
  orchestrators::Routes routes{orchestrator};
  Silent events;
  core::Digest artifact;
  int count = 0;
};

TEST_F(MemoTest, a_run_without_a_memo_is_not_reused) { EXPECT_FALSE(holds()); }

TEST_F(MemoTest, memo_of_another_identity_does_not_hold) {
  remember();
  EXPECT_FALSE(holds("something else"));
}

TEST_F(MemoTest, run_without_changes_is_reported_from_the_earlier_run) {
  remember();
  ASSERT_TRUE(holds());
  EXPECT_EQ(events.steps, 1);
  const auto record = store.runs().find("latest");
  EXPECT_EQ(record->status, RunStatus::succeeded);
  const auto steps = store.runs().steps(record->id);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].status, StepStatus::cached);
  EXPECT_EQ(steps[0].reused_from, "run-1");
  EXPECT_EQ(steps[0].outputs.at(0).digest, artifact);
}

TEST_F(MemoTest, note_and_tags_that_a_user_gave_are_not_those_of_the_next_run) {
  store.runs().set_tags("run-1", {"team", "best"});
  store.runs().set_note("run-1", "my best run");
  remember(RunFingerprint("asked", later), {"team"});
  ASSERT_TRUE(holds());
  const auto record = store.runs().find("latest");
  ASSERT_NE(record->id, "run-1");
  EXPECT_EQ(record->tags, std::vector<std::string>{"team"});
  EXPECT_EQ(record->note, "");
}

TEST_F(MemoTest, changed_file_ends_the_memo) {
  remember();
  core::write_file_atomically(file, "name: y");
  EXPECT_FALSE(holds());
}

TEST_F(MemoTest, file_that_has_just_changed_is_not_trusted) {
  remember(RunFingerprint("asked", [] { return std::chrono::system_clock::time_point(); }));
  EXPECT_FALSE(holds());
}

TEST_F(MemoTest, file_that_appears_ends_the_memo) {
  remember();
  core::write_file_atomically(folder.path() / "nothing here", "");
  EXPECT_FALSE(holds());
}

TEST_F(MemoTest, changed_variable_ends_the_memo) {
  remember();
  ::setenv("MEMO_TEST_VARIABLE", "1", 1);
  EXPECT_FALSE(holds());
  ::unsetenv("MEMO_TEST_VARIABLE");
  EXPECT_TRUE(holds());
}

TEST_F(MemoTest, changed_image_ends_the_memo) {
  remember();
  orchestrator.changed_images = {"image"};
  EXPECT_FALSE(holds());
}

TEST_F(MemoTest, missing_artifact_ends_the_memo) {
  remember();
  artifacts.collect([](const core::Digest&) { return false; });
  EXPECT_FALSE(holds());
}

TEST_F(MemoTest, removed_run_ends_the_memo) {
  remember();
  store.remove_run("run-1", true);
  EXPECT_FALSE(holds());
}

TEST_F(MemoTest, damaged_memo_does_not_hold) {
  remember();
  const auto key = core::sha256("asked").hex();
  const auto text = store.key_values().find("memo", key).value();
  for (std::size_t cut = 0; cut < text.size(); cut += 7) {
    store.key_values().put("memo", key, text.substr(0, cut));
    EXPECT_FALSE(holds()) << cut;
  }
}

TEST_F(MemoTest, spoiled_run_leaves_no_memo) {
  remember();
  RunFingerprint fingerprint("asked");
  fingerprint.invalidate();
  remember(std::move(fingerprint));
  EXPECT_FALSE(holds());
}

}  // namespace
}  // namespace pipeline::engine
