/// @file
/// Runs a pipeline of the test's own with an orchestrator that does what the test says.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/run.hpp"
#include "support/event_recorder.hpp"
#include "unit/engine/fake_orchestrator.hpp"

namespace pipeline::engine {

class RunRecorder final : public test::EventRecorder {
 public:
  void emit(const Event& event) override {
    EventRecorder::emit(event);
    if (on_event) on_event(event);
  }
  std::function<void(const Event&)> on_event;

  std::vector<std::string> lines(const std::string& step) const {
    std::vector<std::string> found;
    for (const auto& log : of<event::StepLog>())
      if (log.step == step) found.push_back(log.line);
    return found;
  }
  event::StepFinished end_of(const std::string& step) const {
    for (auto& finished : of<event::StepFinished>())
      if (finished.step == step) return finished;
    throw std::runtime_error(step + " has no end");
  }
};

inline StepSpec step(std::string name, std::vector<std::string> from = {},
                     std::vector<std::string> after = {}) {
  StepSpec spec;
  spec.name = name;
  spec.command.arguments = {Template{{std::string("do-" + name)}}};
  spec.outputs = {{"out", "out"}};
  for (const auto& other : from) spec.inputs.push_back({other, {{other, "out"}}});
  spec.after = std::move(after);
  return spec;
}

class RunTest : public ::testing::Test {
 protected:
  RunSummary run(EngineOptions options = {}) {
    return with_all(std::move(options), [](Services services, auto&... rest) {
      return engine::run(services, rest...);
    });
  }
  void prepare_detached(EngineOptions options) {
    with_all(std::move(options), [](Services services, auto&... rest) -> async::Task<RunSummary> {
      co_await engine::prepare_detached(services, rest...);
      co_return RunSummary{};
    });
  }
  template <class Do>
  RunSummary with_all(EngineOptions options, Do work) {
    asio::io_context loop;
    store::RunStore store(folder.path() / "state");
    store::ArtifactStore artifacts(folder.path() / "state" / "artifacts");
    store::StatIndex stats(folder.path() / "state" / "stat-index");
    std::map<std::string, std::vector<store::TreeEntry>> files;
    const CodeProvider code{
        [&](const StepSpec& spec) -> const std::vector<store::TreeEntry>& {
          auto& entries = files[spec.name];
          entries.clear();
          for (const auto& [name, text] : sources[spec.name]) {
            core::write_file_atomically(folder.path() / name, text);
            entries.push_back({name, folder.path() / name});
          }
          return entries;
        },
        [&](const StepSpec&, std::string_view output) -> std::optional<std::string> {
          if (when_explained) when_explained();
          return output.find("table.csv") == std::string_view::npos
                     ? std::nullopt
                     : std::optional<std::string>("add table.csv to `code:`");
        }};
    recorder.events.clear();
    if (options.run_id.empty()) options.run_id = "run-" + std::to_string(++count);
    std::exception_ptr error;
    RunSummary summary;
    orchestrators::Routes& place = places ? *places : routes;
    asio::co_spawn(
        loop,
        work(Services{pipeline, place, store, artifacts, stats, code, nullptr, remote_store},
             recorder, cancel, options),
        [&](std::exception_ptr failed, RunSummary result) {
          error = failed;
          summary = std::move(result);
        });
    loop.run();
    if (error) std::rethrow_exception(error);
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "state" / "work" / options.run_id));
    return summary;
  }
  std::string artifact(const std::string& run_id, const std::string& name) {
    store::RunStore store(folder.path() / "state");
    const store::ArtifactStore artifacts(folder.path() / "state" / "artifacts");
    for (const auto& record : store.runs().steps(run_id))
      if (record.name == name) return core::read_file(artifacts.path(record.outputs.at(0).digest));
    return "no such step";
  }
  StepStatus status_of(const std::string& name) { return recorder.end_of(name).status; }

  core::TemporaryFolder folder;
  PipelineSpec pipeline{.name = "test"};
  FakeOrchestrator orchestrator;
  orchestrators::Routes routes{orchestrator};
  std::optional<orchestrators::Routes> places;  ///< Instead of it.
  RunRecorder recorder;
  const settings::RemoteStoreSettings* remote_store = nullptr;
  std::function<void()> when_explained;  ///< Called when advice for a failed step is looked for.
  core::CancelSource cancel;
  std::map<std::string, std::map<std::string, std::string>> sources;
  int count = 0;
};

}  // namespace pipeline::engine
