#include "engine/graph/matrix_expansion.hpp"

#include <algorithm>

#include "core/diagnostic.hpp"
#include "core/quantity.hpp"
#include "model/step_memory.hpp"

namespace pipeline::engine {
namespace {

/// Maximum number of connections between the instances of two steps with one matrix. If each
/// instance of one step gathers all instances of the other, the numbers multiply.
constexpr std::size_t max_connections = 2'000'000;

/// Returns true if the step has an input of this name, which takes precedence over an item.
bool has_input(const StepSpec& step, const std::string& name) {
  return std::ranges::find(step.inputs, name, &InputSpec::name) != step.inputs.end();
}

/// Returns true if the step's command names the axis as a file, `${inputs.AXIS}`.
bool takes_as_file(const StepSpec& step, const std::string& axis) {
  if (has_input(step, axis)) return false;
  const Template::Reference wanted{Template::Placeholder::input, axis};
  return std::ranges::any_of(step.command.arguments, [&](const Template& argument) {
    return std::ranges::any_of(argument.parts, [&](const auto& part) {
      const auto* reference = std::get_if<Template::Reference>(&part);
      return reference && *reference == wanted;
    });
  });
}

}  // namespace

MatrixExpansion::MatrixExpansion(std::vector<const StepSpec*> steps, const FindOutput& find_output,
                                 store::ArtifactStore& artifacts)
    : steps_(std::move(steps)), matrix_(*steps_.front()->matrix) {
  for (const auto& axis : matrix_.axes) {
    auto& items = items_.emplace_back();
    if (axis.items)
      items = items_of(*axis.items, *find_output(axis.items->source), artifacts);
    else
      for (const auto& value : axis.values) items.push_back({*value});
  }
  combine();
  make_names();
}

/// Makes the combinations of all items; those of the last axis change fastest.
void MatrixExpansion::combine() {
  std::size_t size = 1;
  for (const auto& items : items_) {
    size *= items.size();
    if (size > model::max_instances)
      throw core::InputError("the matrix of step '" + matrix_.of + "' makes " +
                             std::to_string(size) + " steps of it, more than " +
                             std::to_string(model::max_instances));
  }
  for (const auto* step : steps_)
    if (const auto bytes = model::memory_of(*step); size * bytes > model::max_step_memory)
      throw core::InputError("the matrix of step '" + matrix_.of + "' makes " +
                                 std::to_string(size) + " copies of step '" + step->name +
                                 "', of " + core::format_bytes(bytes) + ", more than " +
                                 core::format_bytes(model::max_step_memory) + " together",
                             "put long texts into files that the step reads");
  rows_.push_back({});
  for (const auto& items : items_) {
    std::vector<Row> longer;
    longer.reserve(rows_.size() * items.size());
    for (const Row& row : rows_)
      for (const auto& item : items) longer.emplace_back(row).push_back(&item);
    rows_ = std::move(longer);
  }
}

void MatrixExpansion::make_names() {
  for (const auto* step : steps_) {
    model::InstanceNames names(step->name);
    auto& all = names_[step->name];
    all.reserve(rows_.size());
    for (const Row& row : rows_) {
      model::AxisValues values;
      for (std::size_t i = 0; i < row.size(); ++i)
        values.emplace_back(matrix_.axes[i].name, row[i]->value);
      all.push_back(names.next(values));
    }
  }
}

std::vector<StepSpec> MatrixExpansion::instances_of(const StepSpec& step) const {
  for (std::size_t i = 0; i < items_.size(); ++i)
    if (!items_[i].empty() && !items_[i].front().entry && takes_as_file(step, matrix_.axes[i].name))
      throw core::InputError("step '" + step.name + "' takes ${inputs." + matrix_.axes[i].name +
                                 "}, but the items of that axis are values, not files",
                             "write ${params." + matrix_.axes[i].name + "}");
  std::size_t gathered = 0;
  for (const auto& input : step.inputs)
    if (input.gathered)
      for (const auto& source : input.sources) gathered += names_.contains(source.step);
  if (gathered * rows_.size() * rows_.size() > max_connections)
    throw core::InputError("each of the " + std::to_string(rows_.size()) + " instances of '" +
                               step.name + "' gathers all instances of another step",
                           "let one step gather them, and take its output");
  std::vector<StepSpec> all;
  all.reserve(rows_.size());
  StepSpec base = step;  // The instances share its texts.
  base.matrix.reset();
  if (!base.instance)
    base.instance = InstanceSpec{.of = step.name};  // The step may belong to a round.
  for (const auto& axis : matrix_.axes) base.instance->axes.push_back(axis.name);
  for (std::size_t k = 0; k < rows_.size(); ++k) all.push_back(instance(base, k));
  return all;
}

/// Returns the instance of the step for the k-th combination, from 0.
StepSpec MatrixExpansion::instance(const StepSpec& step, std::size_t k) const {
  StepSpec made = step;
  made.name = names_.at(step.name)[k];
  replace_sources(made);
  for (auto& input : made.inputs) {
    SourceList sources;
    for (auto source : input.sources) {
      if (const auto other = names_.find(source.step); other != names_.end())
        source.step = other->second[k];
      sources.push_back(source);
    }
    input.sources = std::move(sources);
  }
  for (std::size_t i = 0; i < rows_[k].size(); ++i) {
    const auto& axis = matrix_.axes[i].name;
    const auto& item = *rows_[k][i];
    if (const auto& items = matrix_.axes[i].items)
      made.instance->taken.emplace_back(axis, items->source);
    made.parameters[axis] = item.value;
    if (item.entry && !has_input(step, axis))
      made.inputs.push_back({.name = axis, .data = DataSpec{.path = *item.entry}});
    if (!made.when) continue;
    if (const auto used = made.when->parameters.find("params." + axis);
        used != made.when->parameters.end())
      used->second = item.value;
  }
  if (made.when)
    for (auto& [name, value] : made.when->outputs)
      if (const auto other = names_.find(value.source.step); other != names_.end())
        value.source.step = other->second[k];
  return made;
}

void MatrixExpansion::replace_sources(StepSpec& reader) const {
  for (auto& input : reader.inputs) {
    if (!input.gathered) continue;
    SourceList sources;
    for (const auto& source : input.sources) {
      const auto other = names_.find(source.step);
      if (other == names_.end()) {
        sources.push_back(source);
        continue;
      }
      for (const auto& name : other->second) sources.push_back({name, source.output});
    }
    input.sources = std::move(sources);
  }
}

}  // namespace pipeline::engine
