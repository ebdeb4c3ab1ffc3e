#include "driver/run_model.hpp"

#include <algorithm>

#include "model/instance.hpp"

namespace pipeline::driver {
namespace {

/// Returns the number of steps that have ended.
/// @param counts a GroupView or a RunModel
template <class Counts>
std::size_t number_done(const Counts& counts) {
  return counts.count(StepStatus::succeeded) + counts.count(StepStatus::cached) +
         counts.count(StepStatus::failed) + counts.count(StepStatus::skipped) +
         counts.count(StepStatus::cancelled);
}

}  // namespace

std::size_t GroupView::done() const { return number_done(*this); }

std::string GroupView::text() const {
  std::string text = std::to_string(done()) + "/" + std::to_string(total);
  for (const auto status : {StepStatus::running, StepStatus::cached, StepStatus::failed,
                            StepStatus::skipped, StepStatus::cancelled})
    if (count(status))
      text += ", " + std::to_string(count(status)) + " " +
              std::string(status == StepStatus::cached ? "reused" : to_string(status));
  return text;
}

StepView& RunModel::step(const std::string& name) {
  if (const auto known = index_.find(name); known != index_.end()) return *known->second;
  auto& view = steps.emplace_back();
  view.name = name;
  index_.emplace(view.name, &view);
  const bool is_counted = only_counted_.erase(std::hash<std::string>()(name)) > 0;
  if (is_counted)
    view.status = StepStatus::cached;
  else
    ++counts_[static_cast<std::size_t>(view.status)];
  if (const auto group = group_index_.find(std::string(model::base_name(name)));
      group != group_index_.end()) {
    view.group = group->second;
    if (!is_counted) ++groups[group->second].counts[static_cast<std::size_t>(view.status)];
  }
  return view;
}

GroupView* RunModel::group_of(const std::string& name) {
  if (groups.empty()) return nullptr;
  const auto group = group_index_.find(std::string(model::base_name(name)));
  return group == group_index_.end() ? nullptr : &groups[group->second];
}

void RunModel::set_status(StepView& step, StepStatus status, SteadyTime now) {
  const auto count = [&](std::size_t* counts) {
    --counts[static_cast<std::size_t>(step.status)];
    ++counts[static_cast<std::size_t>(status)];
  };
  count(counts_);
  if (step.group) {
    auto& group = groups[*step.group];
    count(group.counts);
    if (status == StepStatus::running && group.began == SteadyTime{}) group.began = now;
    group.ended = now;
  }
  step.status = status;
}

/// Counts a reused instance in its group without adding a view. Returns false, and counts nothing,
/// for the first reused instance of a group and for steps that need a view.
bool RunModel::only_counts(const std::string& step, StepStatus status, SteadyTime now) {
  auto* group = status == StepStatus::cached ? group_of(step) : nullptr;
  if (!group || group->count(status) == 0 || index_.contains(step)) return false;
  if (only_counted_.insert(std::hash<std::string>()(step)).second) {
    ++counts_[static_cast<std::size_t>(status)];
    ++group->counts[static_cast<std::size_t>(status)];
    group->ended = now;
  }
  return true;
}

void RunModel::add_group(const std::string& step, std::size_t instances) {
  const std::string name(model::base_name(step));
  // A step may have another number of instances in each round.
  const auto count = instances_[name] += instances;
  if (count <= many_instances) return;
  const auto [known, is_new] = group_index_.try_emplace(name, groups.size());
  if (is_new) {
    groups.push_back({.name = name});
    for (auto& view : steps) {
      if (model::base_name(view.name) != name) continue;
      view.group = known->second;
      ++groups.back().counts[static_cast<std::size_t>(view.status)];
    }
  }
  groups[known->second].total = count;
}

std::size_t RunModel::done() const { return number_done(*this); }

void RunModel::apply(const Event& event, SteadyTime now) {
  std::visit([&](const auto& e) { update(e, now); }, event);
}

void RunModel::update(const event::RunStarted& e, SteadyTime now) {
  run = e.run;
  pipeline = e.pipeline;
  orchestrator = e.orchestrator;
  total = e.steps;
  began = now;
  for (const auto& [name, count] : e.instances) add_group(name, count);
}

void RunModel::update(const event::BuildStarted& e, SteadyTime now) {
  builds.push_back({e.image, e.reason, e.steps, now});
}

void RunModel::update(const event::BuildProgress& e, SteadyTime) {
  for (auto& build : builds)
    if (build.image == e.image) build.text = e.text;
}

void RunModel::update(const event::BuildFinished& e, SteadyTime) {
  std::erase_if(builds, [&](const BuildView& build) { return build.image == e.image; });
  if (e.failure && e.failure->kind != FailureKind::cancelled)
    failed_builds.emplace_back(e.image, *e.failure);
}

void RunModel::update(const event::StepStarted& e, SteadyTime now) {
  auto& view = step(e.step);
  set_status(view, StepStatus::running, now);
  view.attempts = e.attempt;
  view.since = now;
  view.waits_for = {};
  view.row = {};
  view.values.reset();
}

void RunModel::update(const event::StepLog& e, SteadyTime) {
  auto& view = step(e.step);
  view.row = {};
  if (!view.values) view.values.emplace();
  view.values->take(e.line);
}

void RunModel::update(const event::StepProgress& e, SteadyTime) { step(e.step).row = e.row; }

void RunModel::update(const event::StepRetried& e, SteadyTime now) {
  auto& view = step(e.step);
  set_status(view, StepStatus::pending, now);
  view.attempts = e.attempt;
  view.failure.emplace(e.failure);
}

void RunModel::update(const event::StepWaits& e, SteadyTime) { step(e.step).waits_for = e.reason; }

void RunModel::update(const event::StepFinished& e, SteadyTime now) {
  if (only_counts(e.step, e.status, now)) return;
  auto& view = step(e.step);
  set_status(view, e.status, now);
  view.attempts = e.attempts;
  view.took = e.took;
  view.failure = e.failure ? Rare<Failure>(*e.failure) : Rare<Failure>();
  view.reused_from = e.reused_from;
  view.reason = e.reason;
  view.waits_for = {};
}

void RunModel::update(const event::Notice&, SteadyTime) {}

void RunModel::update(const event::StepExpanded& e, SteadyTime) {
  total = e.steps;
  if (!e.round) add_group(e.step, e.instances);
}

void RunModel::update(const event::RunFinished& e, SteadyTime) { finished = e; }

}  // namespace pipeline::driver
