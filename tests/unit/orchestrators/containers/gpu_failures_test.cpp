/// @file
/// The exact messages for failures of GPUs:
/// tests/golden/gpu/NAME.txt and NAME.expected. The first line of a text says whose it is:
/// `engine`, `nvidia-smi CODE` in a container, `host CODE` outside of one, `program`, or `program
/// without gpus`.
#include <filesystem>

#include <gtest/gtest.h>

#include "core/file.hpp"
#include "orchestrators/containers/container_end.hpp"
#include "orchestrators/preflight.hpp"
#include "support/attempt_builder.hpp"
#include "support/golden.hpp"

namespace pipeline::orchestrators::containers {
namespace {

namespace fs = std::filesystem;

const fs::path golden_folder = fs::path(PIPELINE_SOURCE_DIR) / "tests/golden/gpu";

std::optional<Failure> failure_for(const std::string& whose, const std::string& text) {
  test::AttemptBuilder builder(test::program({"python", "train.py"}));
  auto attempt = builder.attempt();
  if (whose != "program without gpus")
    attempt.gpus.push_back({.uuid = "GPU-00000000-0000-4000-8000-000000000000"});
  if (whose == "engine") return start_failure(docker::EngineError(500, text, {}), attempt, "img");
  if (whose.starts_with("program"))
    return failure_of({.exit_code = 1, .last_output = text}, attempt, "img");
  SmiReport report;
  report.code = std::stoi(whose.substr(whose.find(' ')));
  (report.code == 0 ? report.list : report.table) = text;
  return preflight_failure(report, attempt.gpus,
                           whose.starts_with("host") ? GpuVisibility::all : GpuVisibility::its_own);
}

std::string printed(const std::string& name) {
  const auto text = core::read_file(golden_folder / (name + ".txt"));
  const auto end = text.find('\n');
  const auto failure = failure_for(text.substr(0, end), text.substr(end + 1));
  if (!failure) return "no failure\n";
  std::string lines = std::string(to_string(failure->kind)) + ": " + failure->message + "\n";
  for (const auto& hint : failure->hints) lines += "  hint: " + hint + "\n";
  for (const auto& detail : failure->details)
    lines += "  | " + detail + (detail.ends_with('\n') ? "" : "\n");
  return lines;
}

class GpuFailure : public testing::TestWithParam<std::string> {};

TEST_P(GpuFailure, is_explained) {
  test::expect_golden(printed(GetParam()), golden_folder, GetParam());
}

INSTANTIATE_TEST_SUITE_P(golden, GpuFailure,
                         testing::ValuesIn(test::golden_names(golden_folder, {".txt"})),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace pipeline::orchestrators::containers
