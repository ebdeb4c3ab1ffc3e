#include "report/report.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include <nlohmann/json.hpp>

#include "core/file.hpp"

namespace pipeline::report {
namespace {

const ReportTemplates templates{
    "<title>{{title}}</title><style {{style_hash}}>{{style}}</style><data>{{data}}</data>"
    "<script {{script_hash}}>{{script}}</script>",
    "p{}", "run()"};

class ReportTest : public testing::Test {
 protected:
  void add(const std::string& step, StepStatus status, const std::string& log) {
    store::StepRecord record{.run = run.id, .name = step, .status = status};
    record.attempts = 1;
    record.parameters = "{}";
    record.message = "</script><script>alert(1)</script>";
    store.runs().put_step(record);
    const auto name = run.id + "/" + step + ".1.log";
    store.attempts().put({.run = run.id, .step = step, .log = name});
    std::filesystem::create_directories(store.paths().log_file(name).parent_path());
    std::ofstream(store.paths().log_file(name)) << log;
  }
  nlohmann::json data(const ReportLimits& limits = {}) {
    return report_data(store, artifacts, run, limits);
  }
  void SetUp() override {
    run.driver.process = store::ProcessId::self();
    store.runs().add(run);
  }
  core::TemporaryFolder folder;
  store::RunStore store{folder.path() / "state"};
  store::ArtifactStore artifacts{folder.path() / "state" / "artifacts"};
  store::RunRecord run{.id = "r1", .pipeline = "</title>&p", .parameters = "{}"};
};

TEST_F(ReportTest, texts_of_steps_cannot_leave_their_element) {
  add("a", StepStatus::failed, "<!-- </script> {{style}} \x1b[31mred\xff");
  const auto page = render_report(data(), templates);
  EXPECT_NE(page.find("<title>&lt;/title&gt;&amp;p r1</title>"), page.npos);
  const auto begin = page.find("<data>") + 6;
  const auto embedded = page.substr(begin, page.find("</data>") - begin);
  EXPECT_EQ(embedded.find_first_of("<>&"), embedded.npos) << embedded;
  EXPECT_NE(embedded.find("{{style}}"), embedded.npos) << "texts are not filled in again";
  const auto read = nlohmann::json::parse(embedded);
  EXPECT_EQ(read["steps"][0]["m"], "</script><script>alert(1)</script>");
}

TEST_F(ReportTest, the_policy_names_the_style_and_the_script) {
  const auto page = render_report(data(), templates);
  // printf 'p{}' | openssl dgst -sha256 -binary | base64
  EXPECT_NE(page.find("<style 'sha256-"), page.npos);
  EXPECT_NE(page.find("<script 'sha256-"), page.npos);
}

TEST_F(ReportTest, logs_have_a_bound_and_those_of_failed_steps_come_first) {
  add("long", StepStatus::succeeded, std::string(100'000, 'x'));
  add("broken", StepStatus::failed, std::string(1'000'000, 'y'));
  const auto all = data({.logs = 70'000});
  const auto& broken = all["steps"][1]["a"][0];
  EXPECT_EQ(broken["l"].get<std::string>().size(), 64u * 1024);
  EXPECT_EQ(broken["lo"], 1'000'000 - 64 * 1024);
  const auto& other = all["steps"][0]["a"][0];
  EXPECT_EQ(other["l"].get<std::string>().size(), 70'000u - 64 * 1024);
}

TEST_F(ReportTest, long_series_keep_their_extremes) {
  add("train", StepStatus::succeeded, "");
  std::vector<store::MetricPoint> points;
  for (int i = 0; i < 10'000; ++i) points.push_back({i == 4321 ? 99.0 : 0.5, i, {}});
  store.metrics().add_points({.run = "r1", .step = "train", .name = "loss", .attempt = 1}, 0,
                             points);
  const auto metric = data()["metrics"][0];
  EXPECT_EQ(metric["points"], 10'000);
  EXPECT_LE(metric["curve"].size(), 200u);
  bool has_peak = false;
  for (const auto& point : metric["curve"]) has_peak |= point[0] == 4321 && point[1] == 99.0;
  EXPECT_TRUE(has_peak);
}

}  // namespace
}  // namespace pipeline::report
