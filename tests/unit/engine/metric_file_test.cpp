#include "engine/attempt/metric_file.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include <sys/resource.h>

#include "core/error.hpp"
#include "core/file.hpp"
#include "engine/attempt/metric_log.hpp"

namespace pipeline::engine {
namespace {

using FileMetrics = std::vector<std::pair<std::string, store::MetricPoint>>;

/// Returns the metrics in the order of the file.
FileMetrics metrics_in(const std::filesystem::path& file, const std::filesystem::path& name) {
  FileMetrics found;
  read_metric_file(file, name, [&](const std::string& metric, const store::MetricPoint& point) {
    found.emplace_back(metric, point);
  });
  return found;
}

/// Returns the most memory that this process has had, KiB.
long peak_memory() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return used.ru_maxrss;
}

class MetricFile : public testing::Test {
 protected:
  FileMetrics read(const std::string& name, const std::string& text) {
    std::ofstream(folder.path() / name) << text;
    return metrics_in(folder.path() / name, name);
  }
  core::TemporaryFolder folder;
};

TEST_F(MetricFile, without_numbers_is_an_error) {
  for (const auto* text : {"", "{", "{}", R"({"a": "b"})", "[[1]]", "null"})
    EXPECT_THROW(read("m.json", text), core::ContentError) << text;
  for (const auto* text : {"", "a,b\n", "a,b\nx,y\n"})
    EXPECT_THROW(read("m.csv", text), core::ContentError) << text;
  EXPECT_THROW(metrics_in(folder.path(), "m"), core::ContentError) << "a folder";
  EXPECT_THROW(metrics_in(folder.path() / "none", "none"), core::ContentError);
}

TEST_F(MetricFile, leaves_of_json_are_named_by_their_path) {
  const auto found =
      read("m.json", R"({"test": {"accuracy": 0.9, "name": "x", "ok": true}, "loss": [3, 2, 1]})");
  ASSERT_EQ(found.size(), 4u);
  std::map<std::string, std::vector<double>> values;
  for (const auto& [name, point] : found) values[name].push_back(point.value);
  EXPECT_EQ(values["test.accuracy"], std::vector<double>{0.9});
  EXPECT_EQ(values["loss"], (std::vector<double>{3, 2, 1}));
}

TEST_F(MetricFile, of_python_may_have_no_numbers_and_infinite_ones) {
  const auto found = read("m.json", R"({"loss": NaN, "all": [1, -Infinity], "name": "NaN of x"})");
  ASSERT_EQ(found.size(), 3u);
  std::map<std::string, std::vector<double>> values;
  for (const auto& [name, point] : found) values[name].push_back(point.value);
  EXPECT_TRUE(std::isnan(values["loss"].at(0)));
  EXPECT_EQ(values["all"].at(1), -std::numeric_limits<double>::infinity());
  EXPECT_THROW(read("m.json", R"({"a": "NaN"})"), core::ContentError) << "a text";
}

TEST_F(MetricFile, with_a_number_that_no_double_holds_is_refused_with_it) {
  try {
    read("m.json", R"({"loss": 1e400})");
    FAIL() << "the number was accepted";
  } catch (const core::ContentError& error) {
    EXPECT_NE(std::string(error.what()).find("the number '1e400' is too large for 64 bits"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(MetricFile, has_the_format_of_its_outputs_name) {
  std::ofstream(folder.path() / "0123abcd") << "step,loss\n1,0.5\n";
  EXPECT_EQ(metrics_in(folder.path() / "0123abcd", "m.csv").size(), 1u);
}

TEST_F(MetricFile, columns_of_csv_are_series) {
  const auto found = read("m.csv", "epoch,\"loss, train\",who\r\n10,0.5,a\r\n20,0.25,b\r\n");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1].first, "loss, train");
  EXPECT_EQ(found[1].second.value, 0.25);
  EXPECT_EQ(found[1].second.step, 20);
}

TEST_F(MetricFile, names_of_columns_may_have_blanks_around_them) {
  const auto found = read("m.csv", "loss, step\n0.5, 10\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].first, "loss");
  EXPECT_EQ(found[0].second.step, 10);
  EXPECT_EQ(read("m.csv", "epoch, loss\n1, 0.5\n").at(0).first, "loss");
}

TEST_F(MetricFile, long_names_at_many_levels_take_little_memory) {
  constexpr std::size_t levels = 400, bytes = 32 << 10;
  std::string text;
  for (std::size_t i = 0; i < levels; ++i) text += "{\"" + std::string(bytes, 'x') + "\": ";
  text += "1" + std::string(levels, '}');
  const auto before = peak_memory();
  EXPECT_THROW(read("m.json", text), core::ContentError)
      << "a name of more than 200 bytes is refused";
  EXPECT_LT(peak_memory() - before, 400 << 10) << "KiB; the paths of all levels have 2.6 GB";
}

TEST_F(MetricFile, tables_with_a_million_columns_take_little_memory) {
  std::string text = "a";
  for (int line = 0; line < 2; ++line) text += std::string(4 << 20, ',') + "\n1";
  const auto before = peak_memory();
  EXPECT_EQ(read("m.csv", text + "\n").size(), 2U);
  EXPECT_LT(peak_memory() - before, 100 << 10) << "KiB; the fields have 256 MiB";
}

TEST_F(MetricFile, a_log_stores_what_lines_report_within_bounds) {
  store::RunStore store(folder.path() / "state");
  store::RunRecord run{.id = "r", .pipeline = "p", .parameters = "{}"};
  run.driver.process = store::ProcessId::self();
  store.runs().add(run);
  store::StepRecord step{.run = "r", .name = "train", .status = StepStatus::succeeded};
  step.parameters = "{}";
  store.runs().put_step(step);
  MetricLog log(store, "r", "train", 1);
  log.add_line("loss = 3");
  log.flush();
  EXPECT_TRUE(store.metrics().list("r").empty());
  constexpr int values = 20'000;
  for (int i = 0; i < values; ++i)
    log.add_line(R"(@pipe {"metric": "loss", "value": )" + std::to_string(i) + "}");
  for (std::size_t i = 0; i < 2 * MetricLog::max_names; ++i)
    log.add("m" + std::to_string(i), {1, {}, {}});
  log.flush();
  log.flush();
  const auto metrics = store.metrics().list("r");
  EXPECT_EQ(metrics.size(), MetricLog::max_names);
  EXPECT_EQ(metrics[0].name, "loss");
  EXPECT_EQ(metrics[0].points, static_cast<std::uint64_t>(values));
  EXPECT_EQ(metrics[0].last.value, values - 1);
  EXPECT_EQ(store.metrics().points(metrics[0]).at(9'000).value, 9'000);
}

}  // namespace
}  // namespace pipeline::engine
