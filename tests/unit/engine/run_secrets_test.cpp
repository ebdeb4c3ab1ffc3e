// Secrets of steps stay out of what a run shows and stores.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "core/error.hpp"
#include "core/file.hpp"
#include "engine/run.hpp"
#include "unit/engine/run_fixture.hpp"

namespace pipeline::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(RunTest, secret_reaches_the_step_and_nothing_else) {
  ::setenv("RUN_TEST_SECRET", "canary-5d1f", 1);
  pipeline.steps = {step("a")};
  pipeline.steps[0].secrets = {{"RUN_TEST_SECRET", std::nullopt}};
  orchestrator.steps["a"] = [](const orchestrators::Attempt& attempt) {
    const auto& value = attempt.secrets.at("RUN_TEST_SECRET");
    attempt.io.log.write(Stream::out, "token is " + value.substr(0, 4));
    attempt.io.log.write(Stream::out, value.substr(4) + "\n");
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

TEST_F(RunTest, a_secret_in_an_output_is_masked_in_reasons_that_quote_the_output) {
  ::setenv("RUN_TEST_SECRET", "canary-77aa", 1);
  pipeline.steps = {step("a"), step("skipped", {}, {"a"}), step("failing", {}, {"a"})};
  pipeline.steps[0].secrets = {{"RUN_TEST_SECRET", std::nullopt}};
  auto& when = pipeline.steps[1].when.emplace();
  when.text = "${a.out.token} == \"other\"";
  when.outputs["a.out.token"] = {{"a", "out"}, {"token"}};
  pipeline.steps[2].matrix =
      MatrixSpec{"failing", {{"n", {}, OutputValue{{"a", "out"}, {"token"}}}}};
  orchestrator.steps["a"] = [](const orchestrators::Attempt& attempt) {
    return writes(attempt, R"({"token": ")" + attempt.secrets.at("RUN_TEST_SECRET") + "\"}");
  };
  run();
  const auto skipped = recorder.end_of("skipped"), failing = recorder.end_of("failing");
  ::unsetenv("RUN_TEST_SECRET");
  EXPECT_EQ(skipped.status, StepStatus::skipped);
  EXPECT_THAT(skipped.reason, HasSubstr("a.out.token is \"***\""));
  EXPECT_THAT(skipped.reason, Not(HasSubstr("canary")));
  ASSERT_TRUE(failing.failure);
  EXPECT_THAT(failing.failure->message, HasSubstr("a.out.token is not a list, but \"***\""));
}

}  // namespace
}  // namespace pipeline::engine
