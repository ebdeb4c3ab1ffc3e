#include "cli/report_error.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>

#include "cli/summary.hpp"
#include "core/diagnostic.hpp"
#include "core/file.hpp"
#include "driver/error_report.hpp"
#include "driver/run_results.hpp"

namespace pipeline::cli {
namespace {

template <class E>
std::exception_ptr thrown(E error) {
  return std::make_exception_ptr(std::move(error));
}

TEST(ReportError, every_kind_of_error_has_its_exit_code) {
  const auto code = [](const std::exception_ptr& error) {
    return static_cast<int>(report_error(error, {}).code);
  };
  EXPECT_EQ(code(thrown(core::InputError("wrong"))), 2);
  EXPECT_EQ(code(thrown(core::EnvironmentError("no engine"))), 3);
  EXPECT_EQ(code(thrown(core::BuildError("broken", {}, {}))), 4);
  EXPECT_EQ(code(thrown(driver::Interrupted())), 130);
  EXPECT_EQ(code(thrown(std::filesystem::filesystem_error(
                "x", std::make_error_code(std::errc::no_space_on_device)))),
            3);
  EXPECT_EQ(code(thrown(std::logic_error("oops"))), 3);
  EXPECT_EQ(code(thrown(42)), 3);
}

TEST(ReportError, the_text_has_message_details_and_hints) {
  EXPECT_EQ(
      report_error(thrown(core::BuildError("pip failed", {"RUN pip install x", "no such package"},
                                           {"check the name"})),
                   {})
          .text,
      "error: pip failed\n  | RUN pip install x\n  | no such package\n  hint: check the name\n");
  EXPECT_EQ(report_error(thrown(driver::Interrupted()), {}).text, "");
  EXPECT_EQ(report_error(thrown(core::EnvironmentError("bad \x1b[2J name")), {}).text,
            "error: bad  name\n");
}

TEST(ReportError, files_that_others_changed_are_not_reported_as_faults_of_pipe) {
  const std::filesystem::filesystem_error error(
      "x", "/data/gone", std::make_error_code(std::errc::no_such_file_or_directory));
  EXPECT_EQ(report_error(thrown(error), {}).text,
            "error: cannot use '/data/gone': No such file or directory\n");
  const core::TemporaryFolder folder;
  std::filesystem::current_path(folder.path());
  std::filesystem::remove(folder.path());
  EXPECT_EQ(report_error(thrown(error), {}).text,
            "error: the current folder has been removed: No such file or directory\n"
            "  hint: change to a folder that exists\n");
  std::filesystem::current_path("/");
}

TEST(ReportError, problems_of_a_file_are_shown_as_rendered_with_their_number) {
  const core::InputError error({{.code = "unknown-key",
                                 .message = "unknown key 'comand'",
                                 .span = {1, 1, 6},
                                 .suggestion = "did you mean 'command'?"},
                                {.code = "type", .message = "expected a list", .span = {2, 1, 1}}},
                               "p.yaml", "comand: x\ny: z\n");
  const auto text = report_error(thrown(error), {}).text;
  EXPECT_TRUE(text.starts_with("p.yaml:1:1: error: unknown key 'comand'\n")) << text;
  EXPECT_TRUE(text.ends_with("\n2 problems in p.yaml\n")) << text;
}

TEST(ReportError, json_carries_every_diagnostic_with_its_place) {
  const core::InputError error({{.code = "unknown-key",
                                 .message = "unknown key 'comand'",
                                 .span = {4, 5, 6},
                                 .notes = {"allowed: command"},
                                 .suggestion = "did you mean 'command'?"}},
                               "p.yaml", "");
  EXPECT_EQ(
      driver::error_json(thrown(error)),
      nlohmann::json::parse(
          R"({"event": "error", "kind": "input", "message": "unknown key 'comand'", "exit_code": 2, "diagnostics": [
    {"file": "p.yaml", "line": 4, "column": 5, "code": "unknown-key", "severity": "error", "message": "unknown key 'comand'", "notes": ["allowed: command"],
     "suggestion": "did you mean 'command'?"}]})"));
  EXPECT_EQ(
      driver::error_json(thrown(core::EnvironmentError("no engine", {"start one"}))),
      nlohmann::json::parse(
          R"({"event": "error", "kind": "environment", "message": "no engine", "exit_code": 3, "advice": ["start one"]})"));
}

TEST(ExitCodes, of_runs_follow_from_their_status) {
  const auto code = [](engine::RunSummary outcome) {
    return static_cast<int>(driver::exit_code_of(outcome));
  };
  EXPECT_EQ(code({.status = RunStatus::succeeded}), 0);
  EXPECT_EQ(code({.status = RunStatus::failed, .failed = 1}), 1);
  EXPECT_EQ(code({.status = RunStatus::failed, .failed = 1, .environment_failed = true}), 3);
  EXPECT_EQ(code({.status = RunStatus::failed,
                  .failed = 2,
                  .build_failed = true,
                  .environment_failed = true}),
            4);
  EXPECT_EQ(code({.status = RunStatus::interrupted, .failed = 1, .build_failed = true}), 130);
}

}  // namespace
}  // namespace pipeline::cli
