#include "model/structured_line.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "model/event_json.hpp"
#include "model/last_values.hpp"
#include "model/usual_metric.hpp"

namespace pipeline::model {
namespace {

TEST(ParseMetric, other_lines_are_not_metrics) {
  for (const std::string line :
       {"", "loss = 3", "@pipe {", "@pipe {}", R"(@pipe {"metric": "loss"})",
        R"(@pipe {"metric": 3, "value": 1})", R"(@pipe {"metric": "loss", "value": "high"})",
        R"(@pipe {"metric": "loss", "value": [1]})", R"(@pipe {"metric": "", "value": 1})",
        R"(@pipe {"metric": "a\u0007b", "value": 1})", R"(@pipe {"metric": "x", "value": NaNa})",
        R"( @pipe {"metric": "loss", "value": 1})"})
    EXPECT_FALSE(parse_metric(line)) << line;
  EXPECT_FALSE(parse_metric(R"(@pipe {"metric": ")" + std::string(201, 'x') + R"(", "value": 1})"));
}

TEST(ShownLine, separates_its_parts) {
  EXPECT_EQ(shown_line(R"(@pipe {"progress": 0.5, "metric": "loss", "value": 1.5, "level": "info",)"
                       R"( "message": "saved", "fields": {"epoch": 3}})"),
            "50 % loss = 1.5 info: saved epoch=3");
  EXPECT_EQ(shown_line(R"(@pipe {"fields": {"epoch": 3}})"), "epoch=3");
}

TEST(LastValues, take_a_line_that_reports_nothing_else) {
  for (const std::string line :
       {R"(@pipe {"metric": "loss", "value": 1})", R"(@pipe {"metric": "loss", "value": NaN})",
        R"(@pipe {"metric": "loss", "value": 1.5e0, "step": 2.0})", R"(@pipe {"progress": 0.5})"})
    EXPECT_TRUE(LastValues().take(line)) << line;
  LastValues values;
  EXPECT_FALSE(values.take(R"(@pipe {"metric": "loss", "value": 2, "message": "saved"})"));
  EXPECT_EQ(values.text(), "loss 2") << "the value counts, but the message must be shown, too";
}

TEST(ReportProblem, is_found_in_a_line_that_reports_nothing) {
  for (const std::string line :
       {R"(@pipe {"metric": {"name": "loss", "value": 3}})", R"(@pipe {"metric": "loss"})",
        R"(@pipe {"metric": 3, "value": 1})"}) {
    EXPECT_NE(problem_of_report(line).find("a name and a number"), std::string::npos) << line;
    EXPECT_EQ(shown_line(line), line);
  }
  EXPECT_NE(problem_of_report(R"(@pipe {"metric": "loss",)").find("not a JSON"), std::string::npos);
  for (const std::string line : {R"(@pipe {"metric": "loss", "value": NaN})", "loss = 3",
                                 R"(@pipe {"progress": 0.5})", R"(@pipe {"mine": 1})"})
    EXPECT_EQ(problem_of_report(line), "") << line;
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

/// Each form is read once by the reader of the usual form, and once, with a member more, by the
/// JSON parser.
TEST(ParseMetric, the_usual_form_is_read_as_by_the_parser_of_json) {
  for (const std::string number :
       {"1", "-1", "0", "-0", "0.25", "1e-05", "-1.5E+3", "1e400", "1e-400", "01", "1.", ".5", "-",
        "+1", "0x1", "1_0", "123456789012345678901", "0.1234567890123456789"})
    for (const std::string step :
         {"", "3", "-3", "3.7", "1e3", "999999999999999999", "03", "\"3\"", "null"})
      for (const std::string name : {"loss", "a b", "", "\\u0041", "\xff", "\xc3\xa9", "x\ty"}) {
        auto members = "\"metric\": \"" + name + "\", \"value\": " + number;
        if (!step.empty()) members += ", \"step\": " + step;
        const auto usual = parse_metric("@pipe {" + members + "}");
        const auto parsed = parse_metric("@pipe {\"more\": 0, " + members + "}");
        ASSERT_EQ(usual.has_value(), parsed.has_value()) << members;
        if (!usual) continue;
        EXPECT_EQ(shown_line("@pipe {" + members + "}"),
                  shown_line("@pipe {\"more\": 0, " + members + "}"));
        EXPECT_EQ(usual->name, parsed->name);
        EXPECT_EQ(usual->value, parsed->value) << members;
        EXPECT_EQ(std::signbit(usual->value), std::signbit(parsed->value)) << members;
        EXPECT_EQ(usual->step, parsed->step) << members;
      }
}

class UsualMetricLine : public testing::TestWithParam<const char*> {};

TEST_P(UsualMetricLine, is_read_without_the_parser) {
  const auto metric = read_usual_metric(GetParam());
  ASSERT_TRUE(metric);
  EXPECT_EQ(metric->name, "loss");
  EXPECT_EQ(metric->value, 0.25);
  EXPECT_EQ(shown_line(GetParam()), "loss = 0.25");
}
INSTANTIATE_TEST_SUITE_P(
    ParseMetric, UsualMetricLine,
    testing::Values(R"(@pipe {"metric": "loss", "value": 0.25, "step": 3})",
                    R"(@pipe {"metric":"loss","value":0.25})",
                    R"(@pipe { "step": 3 , "value" : 25e-2, "metric": "loss" } )"));

class UnusualMetricLine : public testing::TestWithParam<const char*> {};

TEST_P(UnusualMetricLine, is_passed_to_the_parser) { EXPECT_FALSE(read_usual_metric(GetParam())); }
INSTANTIATE_TEST_SUITE_P(ParseMetric, UnusualMetricLine,
                         testing::Values("", "@pipe {", "@pipe {}", R"(@pipe {"metric": "loss"})",
                                         R"(@pipe {"metric": "loss", "value": 1,})",
                                         R"(@pipe {"metric": "loss", "value": 1} x)",
                                         R"(@pipe {"metric": "loss", "value": 1, "value": 2})",
                                         R"(@pipe {"metric": "loss", "metric": "a", "value": 1})",
                                         R"(@pipe {"metric": "loss", "value": NaN})",
                                         R"(@pipe {"metric": "loss", "value": 1, "mine": 2})"));

TEST(StructuredLine, a_line_of_a_log_nested_60000_deep_is_a_line_like_any_other) {
  for (const auto& deep :
       {std::string(30'000, '[') + std::string(30'000, ']'), std::string(60'000, '['), [] {
          std::string text;
          for (int i = 0; i < 10'000; ++i) text += "{\"a\":";
          return text + "1" + std::string(10'000, '}');
        }()}) {
    const auto line = "@pipe {\"metric\":" + deep + "}";
    EXPECT_FALSE(parse_structured(line));
    EXPECT_EQ(shown_line(line), line);
    EXPECT_NE(to_json_line(event::StepLog{"train", 1, Stream::out, line}).find("@pipe"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace pipeline::model
