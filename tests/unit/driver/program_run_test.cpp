// run() of a C++ program, by an executor that makes the outputs by itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include <pipeline/run.hpp>

#include "core/file.hpp"
#include "core/scope_guard.hpp"
#include "driver/drivers.hpp"
#include "driver/invocation.hpp"
#include "driver/resume.hpp"

namespace pipeline::driver {
namespace {

using testing::HasSubstr;

/// Writes the names of the run's steps into their outputs.
class Writing : public Executor {
 public:
  std::string name() const override { return "writing"; }
  std::string environment(const StepSpec&) override { return "one"; }
  std::optional<Failure> run(const ExecutorRequest& request) override {
    ran.push_back(request.step);
    if (on_run) on_run(request);
    if (request.stop.stop_requested()) return Failure{FailureKind::cancelled, "stopped"};
    std::ofstream(request.outputs + "/" + request.step + ".txt") << request.step;
    return {};
  }
  std::vector<std::string> ran;
  std::function<void(const ExecutorRequest&)> on_run;
};

/// Waits until the executor is asked to stop.
void await_stop(const ExecutorRequest& request) {
  while (!request.stop.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

class ProgramRun : public testing::Test {
 protected:
  ProgramRun() {
    const auto first =
        pipeline_.add(command("first", {"make", "${params.size}"},
                              {.outputs = {{"text", "first.txt"}}, .parameters = {{"size", 3}}}));
    pipeline_.add(
        command("second", {"use", "${inputs.text}"}, {.outputs = {{"text", "second.txt"}}}),
        {{"text", first["text"]}});
  }

  RunResult run(RunOptions options = {}) {
    options.executor = executor_;
    options.state = state().string();
    if (!options.on_event)
      options.on_event = [this](const Event& event) { events_.push_back(event); };
    return pipeline::run(pipeline_, options);
  }
  std::filesystem::path state() const { return folder_.path() / "state"; }
  std::vector<std::string> notices() const {
    std::vector<std::string> texts;
    for (const auto& event : events_)
      if (const auto* notice = std::get_if<event::Notice>(&event)) texts.push_back(notice->text);
    return texts;
  }
  Workspace workspace() {
    WorkspaceOptions options;
    options.program = &pipeline_;
    options.executor = executor_.get();
    options.state = state();
    return {std::move(options), [](std::string_view) {}};
  }

  core::TemporaryFolder folder_;
  std::shared_ptr<Writing> executor_ = std::make_shared<Writing>();
  Pipeline pipeline_{"program", {.root = folder_.path().string()}};
  std::vector<Event> events_;
};

/// Shows nothing.
class Unseen final : public RunObserver, public EventSink {
 public:
  void begin(asio::io_context&) override {}
  EventSink& events() override { return *this; }
  core::CancelSource& cancel() override { return cancel_; }
  void warn(const std::string&, const nlohmann::json&) override {}
  void say(const std::string&) override {}
  void emit(const Event&) override {}

 private:
  core::CancelSource cancel_;
};

TEST_F(ProgramRun, records_how_it_was_begun) {
  const auto result = run({.parameters = {{"first.size", "5"}}, .jobs = 2});
  ASSERT_TRUE(result.succeeded());
  store::RunStore store(state());
  const auto recorded = invocation_of(store, result.id);
  ASSERT_TRUE(recorded);
  EXPECT_EQ(recorded->orchestrator, "writing");
  EXPECT_EQ(recorded->parameters, (std::map<std::string, std::string>{{"first.size", "5"}}));
  EXPECT_EQ(recorded->jobs, 2u);
}

TEST_F(ProgramRun, says_that_the_programs_own_callback_has_thrown) {
  for (const bool is_exception : {true, false}) {
    const auto on_event = [&](const Event& event) {
      if (!std::holds_alternative<event::StepStarted>(event)) return;
      if (is_exception) throw std::runtime_error("no room for the event");
      throw 5;
    };
    try {
      run({.use_cache = false, .on_event = on_event});
      ADD_FAILURE() << "run() did not throw";
    } catch (const RunError& error) {
      EXPECT_THAT(error.what(),
                  HasSubstr(is_exception ? "on_event has thrown an exception: no room for"
                                         : "on_event has thrown an exception"));
      EXPECT_THAT(error.what(), testing::Not(HasSubstr("fault of pipe")));
    }
  }
}

TEST_F(ProgramRun, takes_settings_from_its_profile_that_it_does_not_set_itself) {
  core::write_file_atomically(folder_.path() / "profiles.yaml",
                              "default: {jobs: 2, orchestrator: docker, limits: {license: 1}}\n"
                              "lab: {jobs: 3}\n");
  const auto recorded = [&](RunOptions options) {
    options.use_cache = false;
    const auto result = run(std::move(options));
    store::RunStore store(state());
    return *invocation_of(store, result.id);
  };
  const auto by_default = recorded({});
  EXPECT_EQ(by_default.profile, "default");
  EXPECT_EQ(by_default.jobs, 2u);
  EXPECT_EQ(by_default.orchestrator, "writing");
  EXPECT_EQ(recorded({.profile = "lab"}).jobs, 3u);
  EXPECT_EQ(recorded({.profile = "lab", .jobs = 1}).jobs, 1u);
  ::setenv("PIPE_PROFILE", "lab", 1);
  const core::ScopeGuard unset([] { ::unsetenv("PIPE_PROFILE"); });
  EXPECT_EQ(recorded({}).profile, "lab");
  try {
    run({.profile = "labb"});
    FAIL() << "an unknown profile is refused";
  } catch (const RunError& error) {
    EXPECT_EQ(error.exit_code(), 2);
    EXPECT_THAT(std::string(error.what()), HasSubstr("did you mean 'lab'?"));
  }
}

TEST_F(ProgramRun, reports_each_reused_step_of_a_run_in_which_nothing_has_changed) {
  ASSERT_TRUE(run().succeeded());
  const auto again = run();
  EXPECT_EQ(executor_->ran, (std::vector<std::string>{"first", "second"}));
  for (const char* step : {"first", "second"}) {
    EXPECT_EQ(again.step(step).status, StepStatus::cached) << step;
    EXPECT_FALSE(again.step(step).reused_from.empty()) << step;
  }
}

TEST_F(ProgramRun, that_was_stopped_is_resumed) {
  std::stop_source stop;
  executor_->on_run = [&](const ExecutorRequest& request) {
    if (request.step != "second") return;
    stop.request_stop();
    await_stop(request);
  };
  const auto stopped = run({.stop = stop.get_token()});
  ASSERT_EQ(stopped.status, RunStatus::interrupted);
  executor_->on_run = {};
  auto workspace = this->workspace();
  Unseen observer;
  const auto end = resume_run(workspace, "latest", observer, nullptr);
  EXPECT_EQ(end.outcome.run, stopped.id);
  EXPECT_EQ(end.exit_code, core::ExitCode::ok);
  EXPECT_EQ(executor_->ran, (std::vector<std::string>{"first", "second", "second"}));
}

TEST_F(ProgramRun, has_warnings_among_its_events) {
  pipeline_.add(command("third", {"sh", "missing.sh"}));
  ASSERT_TRUE(run().succeeded());
  EXPECT_THAT(notices(), testing::Contains(HasSubstr("missing.sh")));
}

TEST_F(ProgramRun, that_ended_after_its_record_was_read_is_not_resumed) {
  const auto result = run();
  ASSERT_TRUE(result.succeeded());
  store::RunStore store(state());
  auto record = store.runs().find(result.id).value();
  record.status = RunStatus::running;  // As read before the run ended.
  auto reader = workspace();
  Drivers drivers(reader.driver_context(), store);
  EXPECT_FALSE(drivers.goes_on(record));
  EXPECT_EQ(record.status, RunStatus::succeeded) << "a succeeded run is not resumed";
}

TEST_F(ProgramRun, that_cannot_begin_has_typed_diagnostics) {
  pipeline_.add(command("first", {"again"}));
  pipeline_.add(command("third", {"use", "${inputs.nothing}"}));
  try {
    run();
    FAIL() << "two steps of one name are refused";
  } catch (const RunError& error) {
    EXPECT_EQ(error.exit_code(), 2);
    ASSERT_EQ(error.diagnostics().size(), 2u);
    const auto& first = error.diagnostics().front();
    EXPECT_THAT(first.message, HasSubstr("first"));
    EXPECT_THAT(first.file, HasSubstr("program_run_test.cpp"));
    EXPECT_GT(first.line, 0u);
    EXPECT_THAT(std::string(error.what()), HasSubstr(first.message));
  }
  EXPECT_FALSE(std::filesystem::exists(state())) << "an invalid pipeline leaves no state behind";
}

}  // namespace
}  // namespace pipeline::driver
