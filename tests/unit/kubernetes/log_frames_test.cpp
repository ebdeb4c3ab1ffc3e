#include "kubernetes/log_frames.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "core/file.hpp"
#include "kubernetes/agent.hpp"
#include "net/program.hpp"
#include "support/run_task.hpp"

namespace pipeline::kubernetes {
namespace {

class TheLogFrames : public testing::Test {
 protected:
  std::string out, err;
  LogFrames frames{[this](bool is_err, std::string_view bytes) { (is_err ? err : out) += bytes; }};
};

TEST_F(TheLogFrames, streams_and_unfinished_lines_come_as_they_were) {
  frames.feed("2026-11-21T08:15:00.1Z o one\n2026-11-21T08:15:00.2Z e wrong\n2026-11-21T08:15:00.3Z O half");
  EXPECT_EQ(out, "one\n");
  frames.feed(
      " a line\n2026-11-21T08:15:00.4Z o  and the rest\n2026-11-21T08:15:00.5Z o \n2026-11-21T08:15:00.6Z E no end\n2026-11-21T08:15:00.7Z .\n");
  EXPECT_EQ(out, "one\nhalf a line and the rest\n\n");
  EXPECT_EQ(err, "wrong\nno end");
  EXPECT_TRUE(frames.ended());
}

TEST_F(TheLogFrames, what_comes_again_after_a_cut_is_told_once) {
  const std::string first = "2026-11-21T08:15:00.1Z o 1\n2026-11-21T08:15:00.2Z o 2\n2026-11-21T08:15:00.2Z o 3\n",
                    cut = "2026-11-21T08:15:00.2Z o 4\n";
  frames.feed(first + cut.substr(0, 20));
  for (int i = 0; i < 3; ++i) {
    frames.restart();
    frames.feed(first + cut);
  }
  frames.feed("2026-11-21T08:15:00.20Z o 5\n2026-11-21T08:15:01Z o 6\n");
  EXPECT_EQ(out, "1\n2\n3\n4\n5\n6\n");
}

TEST_F(TheLogFrames, what_is_no_frame_is_shown_as_an_error) {
  frames.feed("2026-11-21T08:15:00.1Z standard_init_linux.go: exec format error\nfailed to watch file\n2026-11-21T08:15:00.2Z \n");
  EXPECT_EQ(err, "standard_init_linux.go: exec format error\nfailed to watch file\n\n");
  EXPECT_EQ(out, "");
  EXPECT_FALSE(frames.ended());
}

/// The agent itself, run here as it is in a pod.
class TheAgent : public TheLogFrames {
 protected:
  net::ProgramAnswer run(std::vector<std::string> command) {
    const auto file = folder.path() / "agent";
    std::ofstream(file, std::ios::binary) << agent_program();
    chmod(file.c_str(), 0755);
    net::ProgramCall call;
    call.command = std::move(command);
    call.command.insert(call.command.begin(), {file.string(), stop_file()});
    auto answer = test::run_task(loop, net::run_program(std::move(call)));
    // As a server sends them: with a time each.
    std::istringstream lines(answer.output);
    for (std::string line; std::getline(lines, line); ++number_) {
      EXPECT_LT(line.size(), 16'000u);
      frames.feed("2026-11-21T08:15:00." + std::to_string(1'000'000 + number_) + "Z " + line + "\n");
    }
    return answer;
  }
  std::string stop_file() const { return folder.path() / "stop"; }
  int number_ = 0;  ///< Of the lines: each is later than the one before.
  asio::io_context loop;
  TemporaryFolder folder;
};

TEST_F(TheAgent, stop_is_a_kill_where_the_file_says_so_also_when_it_comes_later) {
  const auto kept = folder.path().string();
  const std::string stubborn = "trap 'touch " + kept + "/told' TERM; touch " + kept + "/ready; while :; do sleep 0.02; done";
  // The outer agent's script signals the inner one, and makes the file before, or after the step has been told.
  for (const bool later : {false, true}) {
    for (const char* name : {"stop2", "ready", "told"}) std::filesystem::remove(folder.path() / name);
    const std::string order = later ? "kill $p; until [ -e told ]; do sleep 0.02; done; touch stop2" : "touch stop2; kill $p";
    run({"sh", "-c", "cd $0; ./agent stop2 sh -c \"$1\" & p=$!; until [ -e ready ]; do sleep 0.02; done; " + order + "; wait $p; echo code $?", kept,
         stubborn});
    EXPECT_EQ(out, ".\ncode 137\n");  // the inner one's last frame is a line of the outer one's step
    EXPECT_EQ(std::filesystem::exists(folder.path() / "told"), later);
    out.clear();
  }
}

TEST_F(TheAgent, program_that_is_not_there_is_told_from_one_that_fails) {
  EXPECT_EQ(run({"/no/such/program"}).code, 127);
  EXPECT_EQ(run({"/etc"}).code, 126);
  EXPECT_EQ(run({"sh", "-c", "exit 3"}).code, 3);
  EXPECT_EQ(run({"sh", "-c", "kill -SEGV $$"}).code, 139);
}

TEST_F(TheAgent, both_streams_come_whole) {
  const auto answer = run({"sh", "-c", "echo one; echo two >&2; echo; printf 'no end'"});
  EXPECT_EQ(answer.code, 0);
  EXPECT_EQ(out, "one\n\nno end");
  EXPECT_EQ(err, "two\n");
  EXPECT_TRUE(frames.ended());
  EXPECT_EQ(answer.errors, "");
}

TEST_F(TheAgent, long_lines_are_cut_into_frames_and_joined_again) {
  run({"sh", "-c", "head -c 100000 /dev/zero | tr '\\0' x; echo; echo end"});
  EXPECT_EQ(out, std::string(100'000, 'x') + "\nend\n");
}

}  // namespace
}  // namespace pipeline::kubernetes
