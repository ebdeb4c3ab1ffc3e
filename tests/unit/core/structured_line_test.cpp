#include "core/structured_line.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

namespace pipeline::core {
namespace {

TEST(ParseMetric, other_lines_are_none) {
  for (const std::string line :
       {"", "loss = 3", "@pipe {", "@pipe {}", R"(@pipe {"metric": "loss"})",
        R"(@pipe {"metric": 3, "value": 1})", R"(@pipe {"metric": "loss", "value": "high"})",
        R"(@pipe {"metric": "loss", "value": [1]})", R"(@pipe {"metric": "", "value": 1})",
        R"(@pipe {"metric": "a\u0007b", "value": 1})", R"(@pipe {"metric": "x", "value": NaNa})",
        R"( @pipe {"metric": "loss", "value": 1})"})
    EXPECT_FALSE(parse_metric(line)) << line;
  EXPECT_FALSE(parse_metric(R"(@pipe {"metric": ")" + std::string(201, 'x') + R"(", "value": 1})"));
}

TEST(ReportProblem, is_said_of_a_line_that_reports_nothing) {
  for (const std::string line :
       {R"(@pipe {"metric": {"name": "loss", "value": 3}})", R"(@pipe {"metric": "loss"})",
        R"(@pipe {"metric": 3, "value": 1})"}) {
    EXPECT_NE(report_problem(line).find("a name and a number"), std::string::npos) << line;
    EXPECT_EQ(shown_line(line), line);
  }
  EXPECT_NE(report_problem(R"(@pipe {"metric": "loss",)").find("no JSON"), std::string::npos);
  for (const std::string line : {R"(@pipe {"metric": "loss", "value": NaN})", "loss = 3",
                                 R"(@pipe {"progress": 0.5})", R"(@pipe {"mine": 1})"})
    EXPECT_EQ(report_problem(line), "") << line;
}

TEST(ParseMetric, a_value_may_have_a_step) {
  const auto metric = parse_metric(R"(@pipe {"metric": "loss", "value": 0.25, "step": 3})");
  ASSERT_TRUE(metric);
  EXPECT_EQ(metric->name, "loss");
  EXPECT_EQ(metric->value, 0.25);
  EXPECT_EQ(metric->step, 3);
  EXPECT_FALSE(parse_metric(R"(@pipe {"metric": "loss", "value": 1})")->step);
  EXPECT_FALSE(parse_metric(R"(@pipe {"metric": "a", "value": 1, "step": 1e300})")->step);
}

TEST(ParseMetric, numbers_that_json_does_not_have_are_read_as_python_writes_them) {
  constexpr auto infinity = std::numeric_limits<double>::infinity();
  const auto value = [](const std::string& text) {
    return parse_metric(R"(@pipe {"metric": "NaN \" Infinity", "value": )" + text + "}").value();
  };
  EXPECT_TRUE(std::isnan(value("NaN").value));
  EXPECT_TRUE(std::isnan(value("\"nan\"").value));
  EXPECT_EQ(value("Infinity").value, infinity);
  EXPECT_EQ(value("-Infinity").value, -infinity);
  EXPECT_EQ(value("\"-inf\"").value, -infinity);
  EXPECT_EQ(value("-Infinity").name, "NaN \" Infinity") << "a name stays as it is";
}

}  // namespace
}  // namespace pipeline::core
