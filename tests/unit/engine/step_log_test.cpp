#include "engine/attempt/step_log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/file.hpp"

namespace pipeline::engine {
namespace {

using testing::ElementsAre;

struct Logged {
  std::vector<std::string> lines, rows, tail;
  std::string bytes;
};

Logged log_of(const std::vector<std::string>& pieces, std::vector<std::string> secrets = {}) {
  const core::TemporaryFolder folder;
  Logged logged;
  StepLogWriter log(
      folder.path() / "step.log", std::move(secrets),
      [&](Stream, std::string line) { logged.lines.push_back(std::move(line)); },
      [&](std::string row) { logged.rows.push_back(std::move(row)); });
  for (const auto& piece : pieces) log.write(Stream::err, piece);
  log.finish();
  logged.tail.assign(log.tail().begin(), log.tail().end());
  logged.bytes = core::read_file(folder.path() / "step.log");
  return logged;
}

TEST(StepLogTail, has_details_that_are_in_the_log_once) {
  EXPECT_THAT(with_log_tail({"the step exited", "[db] no disk", "4711 python: sleeps"},
                            {"ready", "[db] no disk", "pipe: 4711 python: sleeps"}),
              ElementsAre("the step exited", "ready", "[db] no disk", "pipe: 4711 python: sleeps"));
}

TEST(StepLogTail, has_of_long_lines_the_beginnings_as_one_text) {
  const core::TemporaryFolder folder;
  StepLogWriter log(folder.path() / "step.log", {}, [](Stream, const std::string&) {});
  log.write(Stream::out, "sh: run.sh: not found " + std::string(60'000, '.') + "\nend\n");
  log.finish();
  EXPECT_EQ(log.tail().front().size(), 60'022u);
  EXPECT_THAT(log.tail_text(), testing::StartsWith("sh: run.sh: not found ..."));
  EXPECT_THAT(log.tail_text(), testing::EndsWith("...\nend\n"));
  EXPECT_LT(log.tail_text().size(), 4096u);
}

TEST(StepLogWriter, a_progress_bar_is_shown_while_it_is_drawn) {
  const auto before = log_of({"\r 10%", "\r 20%", "\r100%\ndone\n"});
  EXPECT_THAT(before.rows, ElementsAre(" 10%", " 20%"));
  EXPECT_THAT(before.lines, ElementsAre("100%", "done"));
  EXPECT_EQ(before.bytes, "\r 10%\r 20%\r100%\ndone\n");
  const auto behind = log_of({" 10%\r", " 20%\r 30%\r", "100%\r\n"});
  EXPECT_THAT(behind.rows, ElementsAre(" 10%", " 30%"));
  EXPECT_THAT(behind.lines, ElementsAre("100%"));
}

TEST(StepLogWriter, plain_lines_are_not_taken_for_progress_bars) {
  const auto logged = log_of({"one\r\ntw", "o\n", "three\r", "\n", "end"});
  EXPECT_THAT(logged.lines, ElementsAre("one", "two", "three", "end"));
  EXPECT_THAT(logged.rows, ElementsAre("three"));
}

TEST(StepLogWriter, a_row_is_masked) {
  EXPECT_THAT(log_of({"\rkey hunter2 10%\r"}, {"hunter2"}).rows, ElementsAre("key *** 10%"));
}

TEST(StepLogWriter, metrics_are_not_among_the_last_lines) {
  const auto logged = log_of(
      {"@pipe {\"metric\": \"loss\", \"value\": 0.5, \"step\": 1}\n@pipe {\"metric\": \"loss\"}\n",
       "@pipe {\"level\": \"error\", \"message\": \"no data\"}\nCUDA error\n"});
  EXPECT_EQ(logged.lines.size(), 4u);
  EXPECT_THAT(logged.tail,
              ElementsAre("@pipe {\"metric\": \"loss\"}", "error: no data", "CUDA error"));
}

TEST(StepLogWriter, the_check_of_gpus_is_not_among_the_last_lines) {
  const auto logged = log_of({"[preflight] | NVIDIA-SMI |\n[preflight] GPU 0\n", "no module\n",
                              "[preflight] of the program\n"});
  EXPECT_THAT(logged.tail, ElementsAre("no module", "[preflight] of the program"));
  EXPECT_EQ(logged.lines.size(), 4U) << "the log has it";
}

TEST(StepLogWriter, a_bar_that_is_drawn_for_hours_takes_no_memory_and_is_a_single_line) {
  std::vector<std::string> pieces(20'000, "\r" + std::string(100, '#'));
  EXPECT_EQ(log_of(pieces).lines.size(), 1u);
}

std::string file_of(const std::vector<std::pair<Stream, std::string>>& pieces) {
  const core::TemporaryFolder folder;
  StepLogWriter log(folder.path() / "step.log", {}, [](Stream, const std::string&) {});
  for (const auto& [stream, piece] : pieces) log.write(stream, piece);
  log.finish();
  return core::read_file(folder.path() / "step.log");
}

TEST(StepLogWriter, each_line_of_the_file_is_of_a_single_stream) {
  using enum Stream;
  EXPECT_EQ(file_of({{out, "to stdout"}, {err, "to stderr"}, {out, "\n"}, {err, "\n"}}),
            "to stdout\nto stderr\n");
  EXPECT_EQ(file_of({{out, "to stdout"}, {err, "to stderr"}, {err, "\n"}, {out, "\n"}}),
            "to stdout\nto stderr\n");
  EXPECT_EQ(file_of({{out, "half"}, {err, "pipe: ended\n"}}), "half\npipe: ended\n");
  EXPECT_EQ(file_of({{out, "go on? "}, {err, "one\ntwo"}, {out, "yes\n"}}),
            "go on? \none\ntwo\nyes\n");
  EXPECT_EQ(file_of({{out, "left"}, {err, "over"}}), "left\nover");
}

}  // namespace
}  // namespace pipeline::engine
