/// @file
/// An orchestrator whose steps are functions of the test; the store, the artifacts and the log
/// beside it are real.
#pragma once

#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "async/gate.hpp"
#include "async/sleep.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "engine/run.hpp"

namespace pipeline::engine {

using StepFunction = std::function<orchestrators::AttemptResult(const orchestrators::Attempt&)>;

inline orchestrators::AttemptResult fails_with(int code) {
  return {Failure{FailureKind::exit_code, "exited with code " + std::to_string(code), {}, {}}, code,
          "fake"};
}

inline orchestrators::AttemptResult writes(const orchestrators::Attempt& attempt,
                                           const std::string& text) {
  for (const auto& output : attempt.output_names)
    std::ofstream(attempt.outputs / output.file_name) << text;
  return {std::nullopt, 0, "fake"};
}

class FakeOrchestrator final : public orchestrators::Orchestrator {
 public:
  explicit FakeOrchestrator(std::string name = "fake", bool on_this_machine = true) {
    capabilities_.name = std::move(name);
    capabilities_.gpus = true;
    capabilities_.memory_limits = true;
    capabilities_.on_this_machine = on_this_machine;
    capabilities_.outlives_driver = capabilities_.reports_begin = !on_this_machine;
  }

  const orchestrators::Capabilities& capabilities() const override {
    capabilities_.takes_elsewhere = takes_elsewhere;
    capabilities_.explicit_devices = !chooses_gpus_itself;
    capabilities_.gpus_of_this_machine = !gpus_elsewhere;
    return capabilities_;
  }

  async::Task<std::optional<gpu::Inventory>> gpus(const StepSpec&, EventSink&,
                                                  core::CancelSource&) override {
    co_return gpus_elsewhere;
  }

  async::Task<std::vector<orchestrators::GpuHold>> gpus_in_use() override {
    co_return in_use ? in_use() : std::vector<orchestrators::GpuHold>{};
  }

  async::Task<orchestrators::Environment> environment(const StepSpec& step) override {
    const bool built = built_.contains(image_of(step));
    co_return orchestrators::Environment{
        .id = known_before_build || built ? "id-" + image_of(step) : "",
        .description = image_of(step),
        .ready = built,
        .reason = built ? "" : "new",
        .fingerprint = built ? image_of(step) : "",
        .resolves = packages_of.contains(image_of(step))};
  }

  async::Task<std::string> packages(const StepSpec& step) override {
    co_return packages_of.at(image_of(step));
  }

  async::Task<bool> matches(std::string fingerprint) override {
    co_return !changed_images.contains(fingerprint);
  }

  async::Task<std::vector<core::Diagnostic>> check(const std::vector<const StepSpec*>&) override {
    if (when_checked) when_checked();
    co_return std::vector<core::Diagnostic>{};
  }

  async::Task<orchestrators::Environment> prepare(const StepSpec& step, EventSink&,
                                                  core::CancelSource& cancel) override {
    if (slow_images.contains(image_of(step))) {
      asio::steady_timer timer(co_await asio::this_coro::executor);
      for (int i = 0; i < 100; ++i) {
        timer.expires_after(std::chrono::milliseconds(1));
        co_await timer.async_wait(asio::use_awaitable);
        if (cancel.level() != core::StopLevel::none)
          throw core::EnvironmentError("the build was stopped");
      }
    }
    if (broken_images.contains(image_of(step)))
      throw core::BuildError("cannot build " + image_of(step), {"RUN false"}, {"mend it"});
    if (built_.insert(image_of(step)).second) ++builds;
    co_return co_await environment(step);
  }

  async::Task<orchestrators::AttemptResult> run(const orchestrators::Attempt& attempt) override {
    ++started[attempt.step.name];
    ++running_;
    max_at_once = std::max(max_at_once, running_);
    order.push_back(attempt.step.name);
    if (attempt.joins) joined.push_back(attempt.step.name + "." + std::to_string(attempt.number));
    async::Gate stopped(co_await asio::this_coro::executor);
    const core::CancelSource::Listener listener(attempt.io.cancel,
                                                [&](core::StopLevel) { stopped.open(); });
    orchestrators::AttemptResult result;
    if (const auto wait = begins_after.find(attempt.step.name); wait != begins_after.end()) {
      co_await async::sleep(wait->second);
      attempt.io.on_began({});
    }
    if (blocking.contains(attempt.step.name)) {
      co_await stopped.wait();
      result = {Failure{FailureKind::cancelled, "was stopped", {}, {}}, 143, "fake"};
    } else {
      do co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
      while (max_at_once < waits_for);
      const auto found = steps.find(attempt.step.name);
      result = found == steps.end() ? writes(attempt, attempt.step.name) : found->second(attempt);
    }
    --running_;
    co_return result;
  }

  async::Task<> discard_attempt(const std::string&, const std::string& step,
                                unsigned number) override {
    given_up.push_back(step + "." + std::to_string(number));
    co_return;
  }
  async::Task<> remove_orphans(const std::function<bool(const std::string&)>&) override {
    co_return;
  }

  std::map<std::string, StepFunction>
      steps;  ///< The function of each step; by default it writes the step's name to its outputs.
  std::set<std::string> blocking;  ///< Steps that run until they are stopped.
  std::map<std::string, std::chrono::milliseconds> begins_after;  ///< Steps that wait for a place.
  std::set<std::string> broken_images;
  std::set<std::string> slow_images;     ///< Their preparation takes until other steps have ended.
  std::function<void()> when_checked;    ///< Called before the run begins.
  std::set<std::string> changed_images;  ///< Images for which matches() is false.
  bool known_before_build = true;
  std::map<std::string, std::string>
      packages_of;  ///< Packages of images whose requirements are not pinned.
  std::function<std::vector<orchestrators::GpuHold>()> in_use;
  bool chooses_gpus_itself = false, takes_elsewhere = false;
  std::optional<gpu::Inventory> gpus_elsewhere;  ///< GPUs of another machine, where the steps run.
  std::map<std::string, int> started;
  std::vector<std::string> order, joined, given_up;
  int builds = 0, max_at_once = 0;
  int waits_for = 0;  ///< No step ends before so many have run at once.

 private:
  static std::string image_of(const StepSpec& step) {
    return step.settings->docker.parent_image.value_or("image");
  }
  mutable orchestrators::Capabilities capabilities_;
  std::set<std::string> built_;
  int running_ = 0;
};

}  // namespace pipeline::engine
