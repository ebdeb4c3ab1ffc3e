#include "stager/failure_report.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>

namespace pipeline::stager {
namespace {

using nlohmann::json;

TEST(FailureReport, says_whether_another_attempt_may_succeed) {
  EXPECT_EQ(json::parse(failure_report("not_fetched", "no route to host", true, "")),
            json({{"not_fetched", "no route to host"}, {"passes", true}}));
  EXPECT_EQ(json::parse(failure_report("not_fetched", "wrong content", true, "abc")),
            json({{"not_fetched", "wrong content"}, {"passes", true}, {"damaged", "abc"}}));
}

TEST(FailureReport, of_any_letters_is_whole_JSON_within_the_limit_of_a_cluster) {
  for (const std::string letter : {"a", "\n", "\x1b", "ä", "漢", "\xff"}) {
    std::string message;
    for (int i = 0; i < 5000; ++i) message += letter;
    const auto text = failure_report("not_collected", message, true, std::string(64, '0'));
    EXPECT_LE(text.size(), 4096u) << letter;
    EXPECT_GT(text.size(), 4000u) << letter;
    const auto report = json::parse(text);
    EXPECT_EQ(report["passes"], true);
    EXPECT_EQ(report["damaged"], std::string(64, '0'));
  }
}

TEST(FailureReport, has_the_reason_after_a_path_that_is_longer_than_the_report) {
  const auto message = "cannot read /" + std::string(12'000, 'n') + ": File name too long";
  const std::string shown =
      json::parse(failure_report("not_collected", message, false, "")).at("not_collected");
  EXPECT_TRUE(shown.starts_with("cannot read /nnn")) << shown;
  EXPECT_NE(shown.find("n...n"), std::string::npos) << shown;
  EXPECT_TRUE(shown.ends_with("n: File name too long")) << shown;
}

}  // namespace
}  // namespace pipeline::stager
