#include "cli/run_model.hpp"

#include <algorithm>

namespace pipeline::cli {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;  // which clang 16 does not see by itself

}  // namespace

StepView& RunModel::step(const std::string& name) {
  const auto [found, is_new] = index_.try_emplace(name, steps.size());
  if (is_new) {
    steps.emplace_back().name = name;
    ++counts_[static_cast<std::size_t>(StepStatus::pending)];
  }
  return steps[found->second];
}

void RunModel::set_status(StepView& step, StepStatus status) {
  --counts_[static_cast<std::size_t>(step.status)];
  ++counts_[static_cast<std::size_t>(step.status = status)];
}

std::size_t RunModel::done() const {
  return count(StepStatus::succeeded) + count(StepStatus::cached) + count(StepStatus::failed) + count(StepStatus::skipped) +
         count(StepStatus::cancelled);
}

void RunModel::apply(const Event& event, SteadyTime now) {
  std::visit(Overloaded{
                 [&](const event::RunStarted& e) {
                   run = e.run, pipeline = e.pipeline, orchestrator = e.orchestrator, total = e.steps;
                   began = now;
                 },
                 [&](const event::BuildStarted& e) {
                   builds.push_back({e.image, e.reason, e.steps, now});
                 },
                 [&](const event::BuildProgress& e) {
                   for (auto& build : builds)
                     if (build.image == e.image) build.text = e.text;
                 },
                 [&](const event::BuildFinished& e) {
                   std::erase_if(builds, [&](const BuildView& build) { return build.image == e.image; });
                   if (e.failure) failed_builds.emplace_back(e.image, *e.failure);
                 },
                 [&](const event::StepStarted& e) {
                   auto& view = step(e.step);
                   set_status(view, StepStatus::running);
                   view.attempts = e.attempt;
                   view.since = now;
                   view.waits_for.clear();
                 },
                 [](const event::StepLog&) {},
                 [&](const event::StepRetried& e) {
                   auto& view = step(e.step);
                   set_status(view, StepStatus::pending);
                   view.attempts = e.attempt;
                   view.failure = e.failure;
                 },
                 [&](const event::StepWaits& e) { step(e.step).waits_for = e.reason; },
                 [&](const event::StepFinished& e) {
                   auto& view = step(e.step);
                   set_status(view, e.status);
                   view.attempts = e.attempts;
                   view.took = e.took;
                   view.failure = e.failure;
                   view.reused_from = e.reused_from;
                   view.waits_for.clear();
                 },
                 [](const event::Notice&) {},
                 [&](const event::RunFinished& e) { finished = e; },
             },
             event);
}

}  // namespace pipeline::cli
