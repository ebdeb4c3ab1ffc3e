#include "kubernetes_api/log_frames.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "agent/programs.hpp"
#include "core/file.hpp"
#include "net/program.hpp"
#include "support/agent_file.hpp"
#include "support/run_task.hpp"

namespace pipeline::kubernetes_api {
namespace {

class TheLogFrames : public testing::Test {
 protected:
  std::string out, err, kept;
  PodLogFrames fresh() {
    return PodLogFrames(
        [this](bool is_err, std::string_view bytes) { (is_err ? err : out) += bytes; },
        [this](std::uint64_t place, std::size_t size) {
          return place < kept.size() ? kept.substr(place, std::min(size, at_once)) : "";
        });
  }
  std::size_t at_once = 7;
  PodLogFrames frames = fresh();
};

/// Frames a line as the agent does.
std::string framed(std::size_t& place, char kind, const std::string& text) {
  auto line = kind + std::to_string(place) +
              (kind == '.' ? "" : " " + std::to_string(text.size()) + " " + text) + "\n";
  place += line.size();
  return line;
}

TEST_F(TheLogFrames, a_kept_log_that_the_step_has_replaced_is_not_read_to_its_end) {
  std::size_t place = 0;
  const auto first = framed(place, 'o', "one");
  std::uint64_t read = 0;
  PodLogFrames of_zeros(
      [this](bool is_err, std::string_view bytes) { (is_err ? err : out) += bytes; },
      [&read](std::uint64_t from, std::size_t size) {
        constexpr std::uint64_t end = std::uint64_t{500} << 30;
        const auto count = std::min<std::uint64_t>(size, end - from);
        read += count;
        return std::string(count, '\0');
      });
  of_zeros.feed("2026-11-21T08:15:00Z " + first);
  of_zeros.finish();
  EXPECT_EQ(out, "one\n");
  EXPECT_LT(read, 4u << 20);
}

TEST_F(TheLogFrames, begin_of_a_step_is_known_once_its_services_are_ready) {
  std::size_t place = 0;
  EXPECT_FALSE(frames.has_begun());
  frames.feed("2026-11-21T08:15:00Z " + framed(place, 'w', ""));
  EXPECT_TRUE(frames.has_begun());
  EXPECT_EQ(out + frames.waits(), "");
}

TEST_F(TheLogFrames, progress_of_a_silent_step_has_its_time) {
  using std::chrono::seconds;
  const auto now = std::chrono::steady_clock::now();
  std::size_t place = 0;
  EXPECT_FALSE(frames.last_progress());
  frames.feed("2026-11-21T08:15:00Z " + framed(place, 'w', "P1 train.py\tS1 futex"));
  EXPECT_FALSE(frames.last_progress()) << "the step waits";
  frames.feed("2026-11-21T08:15:01Z " + framed(place, 'a', "60000"));
  ASSERT_TRUE(frames.last_progress());
  EXPECT_GE(*frames.last_progress(), now - seconds(60));
  EXPECT_LT(*frames.last_progress(), now);
  EXPECT_EQ(out + frames.waits(), "") << "the step does not wait any more";
  frames.feed("2026-11-21T08:15:02Z " + framed(place, 'o', "line"));
  EXPECT_GE(*frames.last_progress(), now);
  EXPECT_EQ(out, "line\n");
}

TEST_F(TheLogFrames, an_end_without_a_begin_is_not_a_begin) {
  frames.feed("2026-11-21T08:15:00Z .0\n");
  EXPECT_TRUE(frames.ended());
  EXPECT_FALSE(frames.has_begun());
}

TEST_F(TheLogFrames, the_place_where_a_step_waits_is_not_output_and_lasts_until_the_next_line) {
  std::size_t place = 0;
  const auto feed = [&](char kind, const std::string& text) {
    frames.feed("2026-11-21T08:15:0" + std::to_string(place % 10) + "Z " +
                framed(place, kind, text));
  };
  feed('o', "one");
  EXPECT_EQ(frames.waits(), "");
  feed('w', "P7 sleep 5\tS1 hrtimer_nanosleep");
  EXPECT_EQ(frames.waits(), "P7 sleep 5\tS1 hrtimer_nanosleep");
  EXPECT_EQ(out, "one\n");
  feed('o', "two");
  EXPECT_EQ(frames.waits(), "");
  EXPECT_EQ(out, "one\ntwo\n");
}

TEST_F(TheLogFrames, a_line_of_the_cluster_without_end_is_not_kept_in_memory) {
  const std::string piece(1 << 20, 'x');
  frames.feed("2026-11-21T08:15:00Z ");
  std::size_t most = 0;
  for (int i = 0; i < 40; ++i) {
    frames.feed(piece);
    most = std::max(most, err.size());
    err.clear();
  }
  EXPECT_LE(most, 17u << 20) << "the line is passed on in pieces of 16 MiB";
  EXPECT_GT(most, 1u << 20);
}

class ALog : public TheLogFrames {
 protected:
  ALog() {
    std::size_t place = 0;
    for (const auto& [kind, text] : {std::pair('o', "one"),
                                     {'e', "wrong"},
                                     {'O', "half a line"},
                                     {'o', " and the rest"},
                                     {'o', ""},
                                     {'E', "no end"},
                                     {'.', ""}})
      lines.push_back(framed(place, kind, text));
  }
  /// Returns these lines as a server sends them, each a second after the one before.
  std::string log_lines(std::size_t begin, std::size_t end) const {
    std::string text;
    for (auto i = begin; i < end; ++i)
      text += "2026-11-21T08:15:0" + std::to_string(i) + "Z " + lines[i];
    return text;
  }
  void keep(std::size_t end) {
    for (std::size_t i = 0; i < end; ++i) kept += lines[i];
  }
  void expect_all() const {
    EXPECT_EQ(out, "one\nhalf a line and the rest\n\n");
    EXPECT_EQ(err, "wrong\nno end");
    EXPECT_TRUE(frames.ended());
  }
  std::vector<std::string> lines;
};

TEST_F(ALog, has_its_streams_and_unfinished_lines_as_they_were) {
  const auto all = log_lines(0, 7);
  frames.feed(all.substr(0, 70));
  frames.feed(all.substr(70));
  expect_all();
}

TEST_F(ALog, has_lines_that_are_sent_again_after_a_cut_once) {
  for (std::size_t end = 1; end <= 7; ++end) {
    frames.restart();
    frames.feed(log_lines(0, end) + "2026-11-2");
  }
  expect_all();
}

TEST_F(ALog, lost_by_the_node_is_read_from_the_agents_copy) {
  keep(6);
  frames.feed(log_lines(0, 1) + log_lines(5, 7));
  expect_all();
}

TEST_F(ALog, with_lines_that_the_node_has_joined_is_read_from_the_agents_copy) {
  keep(6);
  for (std::size_t cut = 1; cut < lines[2].size(); ++cut) {
    out.clear();
    err.clear();
    frames = fresh();
    frames.feed(log_lines(0, 2) + "2026-11-21T08:15:02Z " + lines[2].substr(0, cut) + lines[3] +
                log_lines(4, 7));
    expect_all();
  }
}

TEST_F(ALog, lost_everywhere_is_reported_as_missing) {
  frames.feed(log_lines(0, 1) + log_lines(4, 7));
  EXPECT_EQ(out, "one\n\n");
  EXPECT_THAT(err, testing::MatchesRegex(
                       "\\[kubernetes\\] [0-9]+ B of the log are missing here: .*\nno end"));
}

TEST_F(ALog, of_a_removed_pod_is_read_from_the_agents_copy) {
  keep(6);
  frames.feed(log_lines(0, 2));
  frames.finish();
  EXPECT_EQ(out, "one\nhalf a line and the rest\n\n");
  EXPECT_EQ(err, "wrong\nno end");
}

TEST_F(TheLogFrames, text_that_is_not_a_frame_is_shown_once_as_an_error) {
  const std::string text =
      "2026-11-21T08:15:00.1Z standard_init_linux.go: exec format error\n2026-11-21T08:15:00.2Z \n";
  frames.feed(text);
  frames.restart();
  frames.feed(text + "failed to watch file\n");
  EXPECT_EQ(err, "standard_init_linux.go: exec format error\n\nfailed to watch file\n");
  EXPECT_EQ(out, "");
  EXPECT_FALSE(frames.ended());
}

/// The agent itself, run here as it is in a pod.
class TheAgent : public TheLogFrames {
 protected:
  net::ProgramAnswer run(std::vector<std::string> command) {
    const auto file = folder.path() / "agent";
    test::write_agent(file);
    net::ProgramCall call;
    call.command = std::move(command);
    call.command.insert(call.command.begin(), {file.string(), "--log", log_file(), stop_file()});
    auto answer = test::run_task(loop, net::run_program(std::move(call)));
    frames = fresh();
    // A server sends each line with its time.
    std::istringstream lines(answer.output);
    for (std::string line; std::getline(lines, line); ++number_) {
      EXPECT_LT(line.size(), 16'000u);
      frames.feed("2026-11-21T08:15:00." + std::to_string(1'000'000 + number_) + "Z " + line +
                  "\n");
    }
    return answer;
  }
  std::string stop_file() const { return folder.path() / "stop"; }
  std::string log_file() const { return folder.path() / "log"; }
  int number_ = 0;  ///< Number of the line: each is later than the one before.
  asio::io_context loop;
  core::TemporaryFolder folder;
};

TEST_F(TheAgent, kills_the_step_at_a_stop_if_the_file_says_so_also_later) {
  const auto here = folder.path().string();
  const std::string stubborn =
      "trap 'touch " + here + "/told' TERM; touch " + here + "/ready; while :; do sleep 0.02; done";
  // The outer agent's script signals the inner one and creates the file, before or after the step
  // has received the signal.
  for (const bool later : {false, true}) {
    for (const char* name : {"stop2", "ready", "told"})
      std::filesystem::remove(folder.path() / name);
    const std::string order = later ? "kill $p; until [ -e told ]; do sleep 0.02; done; touch stop2"
                                    : "touch stop2; kill $p";
    run({"sh", "-c",
         "cd $0; ./agent stop2 sh -c \"$1\" & p=$!; until [ -e ready ]; do sleep 0.02; done; " +
             order + "; wait $p; echo code $?",
         here, stubborn});
    EXPECT_THAT(out, testing::EndsWith("\ncode 137\n"));  // after the inner one's last frames
    EXPECT_EQ(std::filesystem::exists(folder.path() / "told"), later);
    out.clear();
  }
}

TEST_F(TheAgent, distinguishes_a_missing_program_from_one_that_fails) {
  EXPECT_EQ(run({"/no/such/program"}).code, 127);
  EXPECT_EQ(run({"/etc"}).code, 126);
  EXPECT_EQ(run({"sh", "-c", "exit 3"}).code, 3);
  EXPECT_EQ(run({"sh", "-c", "kill -SEGV $$"}).code, 139);
}

TEST_F(TheAgent, sends_both_streams_completely) {
  const auto answer = run({"sh", "-c", "echo one; echo two >&2; echo; printf 'no end'"});
  EXPECT_EQ(answer.code, 0);
  EXPECT_EQ(out, "one\n\nno end");
  EXPECT_EQ(err, "two\n");
  EXPECT_TRUE(frames.ended());
  EXPECT_EQ(answer.errors, "");
}

TEST_F(TheAgent, keeps_a_copy_of_all_that_it_has_written) {
  run({"sh", "-c",
       "for i in $(seq 1000); do echo line $i; echo wrong $i >&2; done; head -c 20000 /dev/zero | "
       "tr '\\0' x"});
  kept = core::read_file(log_file());
  const auto streams = std::pair(out, err);
  out.clear();
  err.clear();
  at_once = 4096;
  auto again = fresh();
  again.feed("2026-11-21T08:15:00Z ." + std::to_string(kept.size()) + "\n");
  EXPECT_EQ(std::pair(out, err), streams);
  EXPECT_TRUE(again.ended());
}

TEST_F(TheAgent, lets_the_step_run_where_its_log_cannot_be_kept) {
  std::filesystem::create_symlink("/dev/full", log_file());
  EXPECT_EQ(run({"sh", "-c", "echo one; sleep 0.1; echo two; exit 3"}).code, 3);
  EXPECT_EQ(out, "one\ntwo\n");
}

TEST_F(TheAgent, reports_the_usage_of_the_step_and_its_processes) {
  run({"sh", "-c",
       "sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; "
       "head -c 50000000 /dev/zero | tail -c 50000000 > /dev/null; sleep 0.3"});
  const auto used = nlohmann::json::parse(frames.usage());
  EXPECT_GT(used.at("user_us"), 30'000);
  EXPECT_GE(used.at("running_ms"), 300);
  EXPECT_GT(used.at("peak_memory"), 50'000'000) << "`tail` is the largest process";
  EXPECT_LT(used.at("peak_memory"), 80'000'000)
      << "the peak is that of one process, not of the machine";
  EXPECT_TRUE(used.contains("system_us") && used.contains("read") && used.contains("written"));
  EXPECT_EQ(out + err, "");
}

TEST_F(TheAgent, cuts_long_lines_into_frames_that_are_joined_again) {
  run({"sh", "-c", "head -c 100000 /dev/zero | tr '\\0' x; echo; echo end"});
  EXPECT_EQ(out, std::string(100'000, 'x') + "\nend\n");
}

}  // namespace
}  // namespace pipeline::kubernetes_api
