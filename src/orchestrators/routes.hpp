/// @file
/// The orchestrators of a run: each step runs on the one that it names (ZenML's step operators),
/// other steps on the run's.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators {

/// A map of orchestrators by name, each created when it is first asked for. Functions without a
/// step concern all orchestrators that have been created.
class Routes {
 public:
  using Make = std::function<std::unique_ptr<Orchestrator>(const std::string& name)>;
  /// @param main the orchestrator of steps that name none
  Routes(std::string main, Make make) : main_(std::move(main)), make_(std::move(make)) {}
  /// @param only runs all steps; outlives this object
  explicit Routes(Orchestrator& only) : main_(only.capabilities().name), only_(&only) {}

  /// Returns the orchestrator of steps that name none.
  Orchestrator& main() { return named(main_); }
  /// Returns the step's orchestrator.
  Orchestrator& of(const StepSpec& step) { return named(name_of(step)); }
  const Capabilities& capabilities_of(const StepSpec& step) { return of(step).capabilities(); }

  /// Returns `docker`, or for steps of several orchestrators `local, kubernetes`.
  std::string names_of(const std::vector<const StepSpec*>& steps);

  /// Returns Orchestrator::check() of each step's orchestrator.
  async::Task<std::vector<core::Diagnostic>> check(const std::vector<const StepSpec*>& steps);

  /// Returns Orchestrator::expected_waits() of each step's orchestrator, a text for each step.
  async::Task<std::vector<std::string>> expected_waits(const std::vector<const StepSpec*>& steps);

  /// Returns the environment's fingerprint after the name of the step's orchestrator, because it
  /// is checked later without the step; an empty text for an environment without a fingerprint.
  std::string fingerprint_of(const StepSpec& step, const Environment& environment) const;
  /// @param fingerprint from fingerprint_of()
  async::Task<bool> matches(std::string fingerprint);

  async::Task<std::vector<GpuHold>> gpus_in_use();
  async::Task<> settle();
  async::Task<> discard_attempt(const std::string& run_id, const std::string& step,
                                unsigned number);
  async::Task<> remove_orphans(const std::function<bool(const std::string&)>& is_alive);

 private:
  const std::string& name_of(const StepSpec& step) const {
    return step.orchestrator.empty() ? main_ : *step.orchestrator;
  }
  Orchestrator& named(const std::string& name);
  std::vector<Orchestrator*> all() const;

  const std::string main_;
  const Make make_;
  Orchestrator* const only_ = nullptr;
  std::map<std::string, std::unique_ptr<Orchestrator>> made_;
};

}  // namespace pipeline::orchestrators
