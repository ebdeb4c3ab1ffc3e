#include "orchestrators/routing_orchestrator.hpp"

#include <map>
#include <utility>

namespace pipeline::orchestrators {
namespace {

class RoutingOrchestrator : public Orchestrator {
 public:
  RoutingOrchestrator(std::string main,
                      std::function<std::unique_ptr<Orchestrator>(const std::string&)> make)
      : main_(std::move(main)), make_(std::move(make)) {}

  const Capabilities& capabilities() const override { return place(main_).capabilities(); }
  const Capabilities& capabilities_of(const StepSpec& step) const override {
    return place(name_of(step)).capabilities();
  }

  async::Task<std::vector<core::Diagnostic>> check(
      const std::vector<const StepSpec*>& steps) override {
    std::map<std::string, std::vector<const StepSpec*>> of;
    for (const auto* step : steps) of[name_of(*step)].push_back(step);
    std::vector<core::Diagnostic> all;
    for (const auto& [name, its] : of)
      for (auto& each : co_await place(name).check(its)) all.push_back(std::move(each));
    co_return all;
  }

  async::Task<Environment> environment(const StepSpec& step) override {
    auto environment = co_await place(name_of(step)).environment(step);
    sign(step, environment);
    co_return environment;
  }

  async::Task<bool> matches(std::string fingerprint) override {
    const auto end = fingerprint.find(' ');
    if (end == fingerprint.npos) co_return false;
    co_return co_await place(fingerprint.substr(0, end)).matches(fingerprint.substr(end + 1));
  }

  async::Task<std::string> packages(const StepSpec& step) override {
    return place(name_of(step)).packages(step);
  }

  async::Task<> lock(const StepSpec& step, EventSink& events, core::CancelSource& cancel) override {
    return place(name_of(step)).lock(step, events, cancel);
  }

  async::Task<Environment> prepare(const StepSpec& step, EventSink& events,
                                   core::CancelSource& cancel) override {
    auto environment = co_await place(name_of(step)).prepare(step, events, cancel);
    sign(step, environment);
    co_return environment;
  }

  async::Task<AttemptResult> run(const Attempt& attempt) override {
    return place(name_of(attempt.step)).run(attempt);
  }

  async::Task<std::vector<std::string>> waits_of(const Attempt& attempt) override {
    return place(name_of(attempt.step)).waits_of(attempt);
  }

  async::Task<std::optional<gpu::Inventory>> gpus(const StepSpec& step, EventSink& events,
                                                  core::CancelSource& cancel) override {
    return place(name_of(step)).gpus(step, events, cancel);
  }

  async::Task<std::vector<GpuHold>> gpus_in_use() override {
    std::vector<GpuHold> all;
    for (const auto& [name, place] : places_)
      for (auto& hold : co_await place->gpus_in_use()) all.push_back(std::move(hold));
    co_return all;
  }

  async::Task<> settle() override {
    for (const auto& [name, place] : places_) co_await place->settle();
  }

  async::Task<> discard_attempt(const std::string& run_id, const std::string& step,
                                unsigned number) override {
    for (const auto& [name, place] : places_) co_await place->discard_attempt(run_id, step, number);
  }

  async::Task<> remove_orphans(const std::function<bool(const std::string&)>& is_alive) override {
    for (const auto& [name, place] : places_) co_await place->remove_orphans(is_alive);
  }

 private:
  const std::string& name_of(const StepSpec& step) const {
    return step.orchestrator.empty() ? main_ : step.orchestrator;
  }

  Orchestrator& place(const std::string& name) const {
    auto& made = places_[name];
    if (!made) made = make_(name);
    return *made;
  }

  /// The fingerprint must name the orchestrator, because it is checked later without the step.
  void sign(const StepSpec& step, Environment& environment) const {
    if (!environment.fingerprint.empty()) environment.fingerprint.insert(0, name_of(step) + " ");
  }

  const std::string main_;
  const std::function<std::unique_ptr<Orchestrator>(const std::string&)> make_;
  mutable std::map<std::string, std::unique_ptr<Orchestrator>> places_;
};

}  // namespace

std::unique_ptr<Orchestrator> make_routing_orchestrator(
    std::string main, std::function<std::unique_ptr<Orchestrator>(const std::string&)> make) {
  return std::make_unique<RoutingOrchestrator>(std::move(main), std::move(make));
}

}  // namespace pipeline::orchestrators
