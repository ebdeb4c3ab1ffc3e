#include "cli/progress.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/summary.hpp"

namespace pipeline::cli {
namespace {

using namespace std::chrono_literals;
using namespace event;

/// The output of a display, with a clock and a window of the test's own.
struct Screen {
  std::string written;
  driver::SteadyTime now{};
  TerminalSize size{60, 24};
  bool colours = false;

  ProgressIo io() {
    return {.write = [this](std::string_view text) { written += text; },
            .now = [this] { return now; },
            .size = [this] { return size; },
            .paint = Paint{colours}};
  }
  std::string take() { return std::exchange(written, {}); }
};

const Failure oom{FailureKind::out_of_memory,
                  "killed for lack of memory (limit 64 MiB)",
                  {"raise settings.resources.memory"},
                  {"loading", "fitting"}};

TEST(PlainProgress, has_a_line_for_each_event_of_a_run) {
  Screen screen;
  const auto progress = plain_progress(screen.io());
  const std::string digest(64, 'e');
  for (const Event& event : std::initializer_list<Event>{
           RunStarted{"20261121-081500-7f3a9c", "digits", "docker", 4},
           BuildStarted{"pipe:env-" + digest, {"load", "train"}, "requirements changed"},
           BuildProgress{"pipe:env-" + digest, "RUN pip install"},
           BuildFinished{"pipe:env-" + digest, "sha256:1", 8200ms, {}},
           StepFinished{"split", StepStatus::cached, 0, {}, {}, "20261120-000000-000000"},
           StepStarted{"load", 1, "pipe"},
           StepLog{"load", 1, Stream::out, "hello \x1b[31mred\x1b[0m \x1b[2J"},
           StepLog{"load", 1, Stream::err, "a warning"}, StepRetried{"load", 1, oom, 1000ms},
           StepStarted{"load", 2, "pipe"},
           StepFinished{"load", StepStatus::succeeded, 2, 1200ms, {}, {}},
           Notice{"", "the engine is old"},
           StepFinished{"train", StepStatus::failed, 1, 300ms, oom, {}},
           StepFinished{"report",
                        StepStatus::skipped,
                        0,
                        {},
                        Failure{FailureKind::cancelled, "needs 'train', which failed", {}, {}},
                        {},
                        "needs 'train', which failed"},
           StepFinished{"plot",
                        StepStatus::cancelled,
                        0,
                        {},
                        Failure{FailureKind::cancelled, "needs 'load', which was stopped", {}, {}},
                        {},
                        "needs 'load', which was stopped"},
           RunFinished{"20261121-081500-7f3a9c", RunStatus::failed, 12300ms}}) {
    progress->emit(event);
  }
  EXPECT_EQ(screen.take(), R"(digits: run 20261121-081500-7f3a9c, 4 steps, orchestrator docker
[pipe:env-eeeeeeeeeeee] preparing for load, train: requirements changed
[pipe:env-eeeeeeeeeeee] RUN pip install
[pipe:env-eeeeeeeeeeee] ready after 8.2s
[split] reused from run 20261120-000000-000000
[load] started
[load] hello red 
[load] a warning
[load] attempt 1 failed, next one in 1.0s: killed for lack of memory (limit 64 MiB)
  hint: raise settings.resources.memory
[load] started, attempt 2
[load] succeeded after 1.2s and 2 attempts
note: the engine is old
[train] failed after 300ms: killed for lack of memory (limit 64 MiB)
  hint: raise settings.resources.memory
[report] skipped: needs 'train', which failed
[plot] cancelled: needs 'load', which was stopped
)");
}

TEST(PlainProgress, shows_values_of_a_step_from_time_to_time_and_at_its_end) {
  Screen screen;
  const auto progress = plain_progress(screen.io());
  progress->emit(RunStarted{"r", "digits", "local", 1});
  progress->emit(StepStarted{"train", 1, "pipe"});
  screen.take();
  const auto report = [&](const std::string& step) {
    progress->emit(StepLog{"train", 1, Stream::out,
                           R"(@pipe {"metric": "loss", "value": 0.5, "step": )" + step + "}"});
  };
  report("1");
  EXPECT_EQ(screen.take(), "");
  screen.now += 31s;
  report("2");
  EXPECT_EQ(screen.take(), "[train] loss 0.5 (step 2)\n");
  report("3");
  progress->emit(StepLog{"train", 1, Stream::out, R"(@pipe {"progress": 0.5})"});
  progress->emit(StepFinished{"train", StepStatus::succeeded, 1, 1s, {}, {}});
  EXPECT_EQ(screen.take(), "[train] succeeded after 1.0s: 50 %, loss 0.5 (step 3)\n");
}

TEST(PlainProgress, names_the_gpus_and_the_slices_of_an_attempt) {
  Screen screen;
  const auto progress = plain_progress(screen.io());
  progress->emit(RunStarted{"r", "digits", "local", 1});
  const auto shown = [&](std::vector<event::Gpu> gpus) {
    screen.take();
    progress->emit(StepStarted{"a", 1, "pipe", std::move(gpus)});
    return screen.take();
  };
  EXPECT_NE(shown({}).find("[a] started\n"), std::string::npos);
  EXPECT_NE(shown({{"GPU-1", 1, "H100"}}).find("started on GPU 1\n"), std::string::npos);
  EXPECT_NE(shown({{"GPU-1", 1, "H100"}, {"MIG-1", 0, "A100 1g.5gb", 2}})
                .find("started on GPUs 1, 0:2\n"),
            std::string::npos);
  EXPECT_NE(shown({{"MIG-0", 0, "A100 1g.5gb", 1}, {"MIG-1", 0, "A100 1g.5gb", 2}})
                .find("started on MIG devices 0:1, 0:2\n"),
            std::string::npos);
}

TEST(LiveProgress, the_line_of_a_step_has_its_last_values) {
  Screen screen;
  auto io = screen.io();
  const auto progress = live_progress(io);
  progress->emit(RunStarted{"r", "digits", "local", 1});
  progress->emit(StepStarted{"train", 1, "pipe"});
  progress->emit(StepLog{"train", 1, Stream::out, R"(@pipe {"metric": "loss", "value": 0.25})"});
  progress->tick();
  const auto shown = screen.take();
  EXPECT_NE(shown.find("  train  loss 0.25  "), shown.npos) << shown;
  EXPECT_EQ(shown.find("loss = "), shown.npos) << shown;
}

TEST(PlainProgress, reused_steps_of_a_large_pipeline_are_only_counted) {
  Screen screen;
  const auto progress = plain_progress(screen.io());
  progress->emit(RunStarted{"r", "large", "docker", 1000});
  screen.take();
  for (int i = 0; i < 1000; ++i)
    progress->emit(StepFinished{"s" + std::to_string(i), StepStatus::cached, 0, {}, {}, "q"});
  EXPECT_EQ(screen.take(), "");
  EXPECT_EQ(progress->model().count(StepStatus::cached), 1000u);
}

TEST(PlainProgress, shows_a_build_that_is_no_longer_needed_in_a_line_and_not_as_a_failure) {
  Screen screen;
  const auto progress = plain_progress(screen.io());
  progress->emit(RunStarted{"20261121-081500-7f3a9c", "digits", "docker", 3});
  progress->emit(BuildStarted{"venv", {"train"}, "new"});
  screen.take();
  progress->emit(
      BuildFinished{"venv", "", 1500ms,
                    Failure{FailureKind::cancelled, "was stopped", {"try again"}, {"a log"}}});
  EXPECT_EQ(screen.take(), "[venv] stopped after 1.5s\n");
}

TEST(LiveProgress, overwrites_the_sign_that_the_terminal_shows_for_ctrl_c) {
  Screen screen;
  const auto progress = live_progress(screen.io());
  progress->emit(RunStarted{"20261121-081500-7f3a9c", "digits", "docker", 3});
  progress->emit(StepStarted{"load", 1, "pipe"});
  progress->tick();
  screen.take();
  // The cursor is now behind `^C`, in the second column.
  progress->say("stopping gracefully");
  EXPECT_TRUE(screen.take().starts_with("\r\x1b[2A\x1b[Jstopping gracefully\n"));
}

TEST(LiveProgress, shows_running_steps_at_the_bottom_and_the_rest_scrolls_by) {
  Screen screen;
  const auto progress = live_progress(screen.io());
  progress->emit(RunStarted{"20261121-081500-7f3a9c", "digits", "docker", 3});
  progress->emit(StepStarted{"load", 1, "pipe"});
  EXPECT_EQ(screen.take(), "") << "nothing is written between ticks";
  progress->tick();
  EXPECT_EQ(screen.take(),
            "digits: run 20261121-081500-7f3a9c, 3 steps, orchestrator docker\n"
            "[load] started\n"
            "digits  0/3 done, 1 running  0s\n"
            "  load  running                                          0s\n");
  progress->tick();
  EXPECT_EQ(screen.take(), "") << "nothing has changed";

  screen.now += 2500ms;
  progress->emit(StepLog{"load", 1, Stream::out, "one line"});
  progress->emit(BuildStarted{"venv", {"train"}, "new"});
  progress->tick();
  EXPECT_EQ(screen.take(),
            "\r\x1b[2A\x1b[J"
            "[load] one line\n"
            "[venv] preparing for train: new\n"
            "digits  0/3 done, 1 running, 1 preparing  2s\n"
            "  venv  new                                              0s\n"
            "  load  running                                          2s\n");

  progress->emit(BuildProgress{
      "venv", "installing a package with a name that is much too long for this window"});
  progress->emit(StepFinished{"load", StepStatus::succeeded, 1, 2500ms, {}, {}});
  progress->tick();
  EXPECT_EQ(screen.take(),
            "\r\x1b[3A\x1b[J"
            "[load] succeeded after 2.5s\n"
            "digits  1/3 done, 1 preparing  2s\n"
            "  venv  installing a package with a name that is much …  0s\n");

  progress->emit(RunFinished{"20261121-081500-7f3a9c", RunStatus::succeeded, 3s});
  progress->close();
  EXPECT_EQ(screen.take(), "\r\x1b[2A\x1b[J");
  progress->tick();
  progress->close();
  EXPECT_EQ(screen.take(), "");
}

TEST(LiveProgress, needs_no_more_than_the_windows_width_and_half_of_its_rows) {
  Screen screen;
  screen.size = {30, 12};
  const auto progress = live_progress(screen.io());
  progress->emit(RunStarted{"r", "a-pipeline-with-quite-a-long-name", "docker", 100});
  for (int i = 0; i < 20; ++i)
    progress->emit(StepStarted{"a-step-with-a-long-name-日本語-" + std::to_string(i), 2, "pipe"});
  progress->tick();
  screen.take();
  screen.now += 3s;
  progress->tick();
  auto text = screen.take();
  text.erase(0, text.find("\x1b[J") + 3);
  const auto lines = lines_of(text);
  EXPECT_EQ(lines.size(), 6u);
  for (const auto line : lines) EXPECT_LT(display_width(line), 30u) << line;
  EXPECT_EQ(lines.back(), "  and 16 more");
}

TEST(LiveProgress, shows_messages_at_once) {
  Screen screen;
  const auto progress = live_progress(screen.io());
  progress->say("stopping gracefully; press Ctrl-C again to stop at once");
  EXPECT_EQ(screen.take(), "stopping gracefully; press Ctrl-C again to stop at once\n");
}

TEST(LiveProgress, keeps_a_steps_colours_where_colours_are_wanted) {
  Screen screen;
  screen.colours = true;
  const auto progress = live_progress(screen.io());
  progress->emit(StepLog{"load", 1, Stream::out, "\x1b[31mred\x1b[2K"});
  progress->close();
  EXPECT_EQ(screen.take(), "\x1b[36m[load]\x1b[0m \x1b[31mred\x1b[0m\n");
}

TEST(JsonProgress, has_a_line_for_each_event) {
  Screen screen;
  const auto progress = json_progress(screen.io());
  progress->emit(StepLog{"load", 1, Stream::err, "bytes \xff and \n"});
  progress->emit(RunFinished{"r", RunStatus::succeeded, 5ms});
  progress->say("not JSON");
  const auto text = screen.take();
  const auto lines = lines_of(text);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(nlohmann::json::parse(lines[0])["stream"], "stderr");
  EXPECT_EQ(nlohmann::json::parse(lines[1])["event"], "run_finished");
}

driver::RunModel model_of(std::initializer_list<Event> events) {
  driver::RunModel model;
  for (const auto& event : events) model.apply(event, {});
  return model;
}

TEST(Summary, of_a_run_that_went_well) {
  const auto model = model_of({RunStarted{"r2", "digits", "docker", 2},
                               StepFinished{"load", StepStatus::cached, 0, {}, {}, "r1"},
                               StepStarted{"train", 1, "x"},
                               StepFinished{"train", StepStatus::succeeded, 1, 1200ms, {}, {}},
                               RunFinished{"r2", RunStatus::succeeded, 1300ms}});
  const Summary summary{model,
                        {.run = "r2", .status = RunStatus::succeeded, .succeeded = 1, .cached = 1},
                        {{"train.model", ".pipe/artifacts/ab/cd", 2048}},
                        "pipe artifacts r2 train.model --copy DEST"};
  EXPECT_EQ(render_summary(summary, {}), R"(
STEP   STATUS     TIME  ATTEMPTS
load   reused                     reused from run r1
train  succeeded  1.2s  1

digits succeeded in 1.3s: 1 succeeded, 1 reused  (run r2)
RESULT       SIZE   PATH
train.model  2 KiB  .pipe/artifacts/ab/cd
Copy one out: pipe artifacts r2 train.model --copy DEST
Report: pipe report r2
)");
}

TEST(Summary, of_failures_has_each_reason_once_with_its_last_lines) {
  const Failure build{FailureKind::build,
                      "cannot build pipe:env",
                      {"check the name"},
                      {"RUN pip install nothing", "ERROR: no such package"}};
  const auto model =
      model_of({RunStarted{"r", "digits", "docker", 4},
                StepFinished{"a", StepStatus::failed, 0, {}, build, {}},
                StepFinished{"b", StepStatus::failed, 0, {}, build, {}},
                StepFinished{"c", StepStatus::failed, 3, 900ms, oom, {}},
                StepFinished{"d",
                             StepStatus::skipped,
                             0,
                             {},
                             Failure{FailureKind::cancelled, "needs 'c', which failed", {}, {}},
                             {}},
                RunFinished{"r", RunStatus::failed, 1000ms}});
  EXPECT_EQ(
      render_summary(
          {model, {.run = "r", .status = RunStatus::failed, .failed = 3, .skipped = 1}, {}, {}},
          {}),
      R"(
STEP  STATUS   TIME   ATTEMPTS
a     failed
b     failed
c     failed   900ms  3
d     skipped                   needs 'c', which failed

a, b failed: cannot build pipe:env
  | RUN pip install nothing
  | ERROR: no such package
  hint: check the name

c failed: killed for lack of memory (limit 64 MiB)
  | loading
  | fitting
  hint: raise settings.resources.memory
  its whole output: pipe logs r c

digits failed in 1.0s: 3 failed, 1 skipped  (run r)
Report: pipe report r
)");
}

TEST(Summary, of_a_large_run_lists_only_steps_that_did_not_succeed) {
  driver::RunModel model;
  model.apply(RunStarted{"r", "large", "docker", 1001}, {});
  for (int i = 0; i < 1000; ++i)
    model.apply(StepFinished{"s" + std::to_string(i), StepStatus::succeeded, 1, 5ms, {}, {}}, {});
  const Summary well{
      model, {.run = "r", .status = RunStatus::succeeded, .succeeded = 1000, .cached = 1}, {}, {}};
  EXPECT_EQ(render_summary(well, {}),
            "\nlarge succeeded: 1000 succeeded, 1 reused  (run r)\nReport: pipe report r\n");
  model.apply(StepFinished{"last",
                           StepStatus::failed,
                           1,
                           5ms,
                           Failure{FailureKind::exit_code, "ended with exit code 1", {}, {}},
                           {}},
              {});
  EXPECT_EQ(
      render_summary({model,
                      {.run = "r", .status = RunStatus::failed, .succeeded = 1000, .failed = 1},
                      {},
                      {}},
                     {}),
      "\nSTEP  STATUS  TIME  ATTEMPTS\nlast  failed  5ms   1\n\nlast failed: ended with exit code "
      "1\n\nlarge failed: 1000 succeeded, 1 failed  "
      "(run r)\nReport: pipe report r\n");
}

}  // namespace
}  // namespace pipeline::cli
