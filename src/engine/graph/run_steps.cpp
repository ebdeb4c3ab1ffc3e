#include "engine/graph/run_steps.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "engine/graph/selection.hpp"
#include "model/step_needs.hpp"

namespace pipeline::engine {

RunSteps::RunSteps(const PipelineSpec& pipeline, const std::string& only_step)
    : pipeline_(pipeline),
      selected_(select_steps(pipeline, only_step)),
      graph_(needs_of(pipeline, selected_)),
      states_(selected_.size()) {
  specs_.reserve(size());
  for (const auto i : selected_) specs_.push_back(&pipeline_.steps[i]);
  position_.update();
  // In this order, steps become instances after the steps that they need.
  note_dynamic(*graph_.topological_order());
  if (!dynamic_.empty())
    for (model::StepIndex i = 0; i < size(); ++i) note_reads(i);
  note_repeats();
}

/// Remembers which of the steps will be replaced by instances. Of a step that has a matrix and is
/// repeated, these are the steps of its rounds.
void RunSteps::note_dynamic(const std::vector<model::StepIndex>& steps) {
  std::map<std::string_view, std::size_t> matrices;
  for (const auto i : steps) {
    if (!spec(i).matrix || spec(i).repeat) continue;
    const auto [place, is_new] = matrices.emplace(spec(i).matrix->of, dynamic_.size());
    if (is_new) dynamic_.emplace_back();
    dynamic_[place->second].push_back(i);
    readers_[i];
  }
}

/// Remembers the loops: which steps run in rounds together.
void RunSteps::note_repeats() {
  std::map<std::string_view, std::vector<model::StepIndex>> groups;
  for (model::StepIndex i = 0; i < size(); ++i)
    if (spec(i).repeat) groups[spec(i).repeat->of].push_back(i);
  for (const auto& [head, members] : groups) {
    std::vector<const StepSpec*> specs;
    for (const auto i : members) specs.push_back(&spec(i));
    Repeat repeat{Rounds(specs), std::vector<model::StepIndex>(members.size()), {}};
    for (const auto i : members) repeat.steps[repeat.rounds.position_of(spec(i).name)] = i;
    repeats_.emplace(position_.at(head), std::move(repeat));
  }
}

/// Remembers that the step gathers outputs of steps which will be replaced by instances.
void RunSteps::note_reads(model::StepIndex i) {
  for (const auto& input : spec(i).inputs) {
    if (!input.gathered) continue;
    for (const auto& source : input.sources) {
      const auto maker = position_.at(source.step);
      if (const auto found = readers_.find(maker); found != readers_.end())
        found->second.push_back(i);
    }
  }
}

std::vector<model::StepIndex> RunSteps::needs(model::StepIndex i) const {
  std::vector<model::StepIndex> needs;
  if (i < graph_.size()) {
    needs.assign(graph_.needs(i).begin(), graph_.needs(i).end());
    return needs;
  }
  model::for_each_need(spec(i),
                       [&](const std::string& name) { needs.push_back(position_.at(name)); });
  std::ranges::sort(needs);
  needs.erase(std::unique(needs.begin(), needs.end()), needs.end());
  return needs;
}

std::vector<const StepSpec*> RunSteps::with_status(StepStatus status) const {
  std::vector<const StepSpec*> found;
  for (model::StepIndex i = 0; i < size(); ++i)
    if (states_[i].status == status && !states_[i].instances) found.push_back(&spec(i));
  return found;
}

model::StepIndex RunSteps::producer(const std::string& name) const {
  const auto i = position_.at(name);
  if (i >= graph_.size() || !spec(i).repeat) return i;
  const auto& repeat = repeats_.at(position_.at(spec(i).repeat->of));
  return static_cast<model::StepIndex>(repeat.firsts.back() +
                                       repeat.rounds.position_of(spec(i).name));
}

std::vector<bool> RunSteps::wait_for_ends(model::StepIndex first) const {
  std::vector<bool> wait(size() - first);
  const auto is_tolerant = [](const InputSpec& input) { return input.at_least.has_value(); };
  const bool is_any_allowed = std::ranges::any_of(pipeline_.steps, &StepSpec::allow_failure);
  for (auto i = first; i < size(); ++i)
    wait[i - first] =
        spec(i).run_on != RunOn::success || std::ranges::any_of(spec(i).inputs, is_tolerant) ||
        (is_any_allowed &&
         std::ranges::any_of(needs(i), [this](auto need) { return spec(need).allow_failure; }));
  return wait;
}

OutputsOf RunSteps::outputs_of() const {
  return [this](const SourceSpec& source) {
    return MadeOutput{&spec(position_.at(source.step)), find_output(source)};
  };
}

Predecessors RunSteps::before(model::StepIndex i, store::ArtifactStore& artifacts) const {
  auto all = Outcome::made;
  for (const auto need : needs(i)) {
    const auto outcome = outcome_of(need);
    if (outcome == Outcome::failed || (outcome == Outcome::unknown && all != Outcome::failed))
      all = outcome;
  }
  return {[this](const std::string& step) { return outcome_of(position_.at(step)); }, all,
          find_local(artifacts)};
}

bool RunSteps::has_lost_need(model::StepIndex i) const {
  return std::ranges::any_of(needs(i), [this](auto need) {
    const auto outcome = outcome_of(need);
    return states_[need].may_be_skipped ||
           (outcome != Outcome::made && outcome != Outcome::unknown);
  });
}

Outcome RunSteps::outcome_of(model::StepIndex i) const {
  switch (states_[i].status) {
    case StepStatus::succeeded:
    case StepStatus::cached: return states_[i].may_be_skipped ? Outcome::unknown : Outcome::made;
    case StepStatus::failed: return spec(i).allow_failure ? Outcome::tolerated : Outcome::failed;
    case StepStatus::cancelled: return Outcome::failed;
    case StepStatus::skipped: return Outcome::skipped;
    default: return Outcome::unknown;
  }
}

std::pair<Outcome, const StepSpec*> RunSteps::outcome_of_instances(model::StepIndex i) const {
  std::pair<Outcome, const StepSpec*> worst{Outcome::made, &spec(i)};
  const auto [first, count] = *states_[i].instances;
  for (auto k = first; k < first + count; ++k) {
    const auto outcome = outcome_of(k);
    if (outcome == Outcome::failed) return {outcome, &spec(k)};
    if (outcome != Outcome::made && worst.first != Outcome::skipped) worst = {outcome, &spec(k)};
  }
  return worst;
}

/// Returns a function that finds the outputs that this machine has.
FindOutput RunSteps::find_local(store::ArtifactStore& artifacts) const {
  return [this, &artifacts](const SourceSpec& source) {
    const auto* output = find_output(source);
    return output && artifacts.has(output->digest) ? output : nullptr;
  };
}

const store::OutputRecord* RunSteps::find_output(const SourceSpec& source) const {
  const auto& outputs = states_[position_.at(source.step)].outputs;
  const auto found = std::ranges::find(outputs, source.output, &store::OutputRecord::name);
  return found == outputs.end() ? nullptr : &*found;
}

std::vector<model::StepIndex> RunSteps::take_dynamic_matrix() {
  for (auto group = dynamic_.begin(); group != dynamic_.end(); ++group) {
    const auto& axes = spec(group->front()).matrix->axes;
    const bool are_made = std::ranges::all_of(
        axes, [&](const AxisSpec& axis) { return !axis.items || find_output(axis.items->source); });
    if (!are_made) continue;
    auto steps = std::move(*group);
    dynamic_.erase(group);
    std::erase_if(steps, [&](auto i) { return states_[i].status != StepStatus::pending; });
    if (!steps.empty()) return steps;
    return take_dynamic_matrix();
  }
  return {};
}

std::vector<RunSteps::InstanceNeeds> RunSteps::expand(const std::vector<model::StepIndex>& steps,
                                                      store::ArtifactStore& artifacts) {
  std::vector<const StepSpec*> specs;
  for (const auto i : steps) specs.push_back(&spec(i));
  const MatrixExpansion expansion(
      specs, [this](const SourceSpec& source) { return find_output(source); }, artifacts);
  std::vector<std::vector<StepSpec>> made;
  for (const auto* each : specs) made.push_back(expansion.instances_of(*each));
  std::vector<InstanceNeeds> needs;
  for (std::size_t k = 0; k < steps.size(); ++k)
    needs.push_back(add(steps[k], std::move(made[k]), expansion));
  return needs;
}

/// Adds the instances of one step, and returns their dependencies.
RunSteps::InstanceNeeds RunSteps::add(model::StepIndex base, std::vector<StepSpec> instances,
                                      const MatrixExpansion& expansion) {
  const auto first = static_cast<model::StepIndex>(size());
  states_[base].instances = {first, static_cast<model::StepIndex>(instances.size())};
  states_[base].status = StepStatus::running;
  append(std::move(instances));
  for (const auto reader : readers_.at(base)) {
    made_.push_back(spec(reader));
    expansion.replace_sources(made_.back());
    specs_[reader] = &made_.back();
  }
  return connect(first);
}

void RunSteps::append(std::vector<StepSpec> made) {
  states_.resize(size() + made.size());
  for (auto& step : made) {
    made_.push_back(std::move(step));
    specs_.push_back(&made_.back());
  }
  position_.update();
}

/// Returns the dependencies of the steps from `first` on, which have just been made.
RunSteps::InstanceNeeds RunSteps::connect(model::StepIndex first) {
  InstanceNeeds needs;
  needs.reserve(size() - first);
  for (auto i = first; i < size(); ++i) {
    needs.push_back(this->needs(i));
    note_reads(i);
  }
  return needs;
}

std::vector<const StepSpec*> RunSteps::repeated_with(model::StepIndex head) const {
  std::vector<const StepSpec*> specs{&spec(head)};
  for (const auto i : repeats_.at(head).steps)
    if (i != head) specs.push_back(&spec(i));
  return specs;
}

unsigned RunSteps::rounds(model::StepIndex head) const {
  return static_cast<unsigned>(repeats_.at(head).firsts.size());
}

RunSteps::InstanceNeeds RunSteps::add_round(model::StepIndex head) {
  auto& repeat = repeats_.at(head);
  const auto first = static_cast<model::StepIndex>(size());
  std::vector<const StepSpec*> specs;
  for (const auto i : repeat.steps) {
    specs.push_back(&spec(i));
    states_[i].instances = {
        first, static_cast<model::StepIndex>(i == head ? repeat.steps.size() : std::size_t{0})};
    states_[i].status = StepStatus::running;
  }
  append(repeat.rounds.steps_of(rounds(head), specs));
  repeat.firsts.push_back(first);
  std::vector<model::StepIndex> made(repeat.steps.size());
  std::iota(made.begin(), made.end(), first);
  note_dynamic(made);
  return connect(first);
}

ConditionValue RunSteps::is_last_round(model::StepIndex head,
                                       store::ArtifactStore& artifacts) const {
  return repeats_.at(head).rounds.is_last(rounds(head) - 1, find_local(artifacts), artifacts);
}

void RunSteps::end_rounds(model::StepIndex head) {
  const auto& [rounds, steps, firsts] = repeats_.at(head);
  for (std::size_t k = 0; k < steps.size(); ++k)
    states_[steps[k]].outputs = states_[firsts.back() + k].outputs;
}

void RunSteps::refresh_loops() {
  for (const auto& [head, repeat] : repeats_)
    if (states_[head].status == StepStatus::succeeded) end_rounds(head);
}

std::vector<std::pair<model::StepIndex, model::StepIndex>> RunSteps::steps_of_rounds(
    model::StepIndex head) const {
  const auto& [rounds, steps, firsts] = repeats_.at(head);
  std::vector<std::pair<model::StepIndex, model::StepIndex>> all;
  for (const auto first : firsts)
    for (std::size_t k = 0; k < steps.size(); ++k)
      all.emplace_back(static_cast<model::StepIndex>(first + k), steps[k]);
  return all;
}

}  // namespace pipeline::engine
