#include "spec/expansion.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include "core/joined.hpp"
#include "core/text.hpp"
#include "settings/decode.hpp"
#include "spec/step_reader.hpp"

namespace pipeline::spec {
namespace {

using Row = std::vector<Json>;

/// Maximum number of connections between steps. If each instance of a matrix reads all instances of
/// another matrix, the product of their numbers counts.
constexpr std::size_t max_connections = 2'000'000;
constexpr std::size_t max_failures_shown = 3, max_values_shown = 20;

/// Formats one combination of values as `c=0.1,kernel=rbf`.
std::string shown(const std::vector<std::string>& axes, const Row& row) {
  std::string text;
  for (std::size_t i = 0; i < axes.size(); ++i)
    text += (i ? "," : "") + axes[i] + "=" + model::axis_text(*row[i]);
  return text;
}

/// The instances of one step that a selector picks, for each instance of the reading step.
struct Selection {
  /// Returns the instances that a reader with these values takes; null if there are none.
  /// @param reader null for a reader without a matrix
  const std::vector<std::uint32_t>* find(const Row* reader) const {
    std::string key;
    if (reader)
      for (const auto& [target_axis, reader_axis] : same)
        key += (*reader)[reader_axis]->dump() + '\n';
    const auto found = groups.find(key);
    return found == groups.end() ? nullptr : &found->second;
  }

  bool is_gathered = false;
  /// Axes of the target that must have the values of these axes of the reader.
  std::vector<std::pair<std::size_t, std::size_t>> same;
  /// Keyed by the values of the target's axes in `same`.
  std::unordered_map<std::string, std::vector<std::uint32_t>> groups;
};

/// A reference of one step, the reader, to another step, the target: to an output of the target, or
/// to the target itself in `after`. A step is open (ReadStep::open) if another step of the run
/// makes the values of its matrix.
struct Reading {
  const model::Selector& selector;
  const ReadStep& target;
  const ReadStep& reader;
  const std::string& output;  ///< Such as `.model`, for messages; empty for a step in `after`.
  core::Span span;
  settings::Diagnostics& diagnostics;

  /// Returns nothing for a selector that does not fit its target, which is reported.
  std::optional<Selection> select() const {
    const auto is_broken = [](const ReadStep& step) {
      return !step.matrix && !step.open && step.body->find("matrix");
    };
    if (is_broken(target) || (selector.same && is_broken(reader)))
      return std::nullopt;  // An error has been reported already.
    if (target.open) return of_open_matrix();
    if (selector.same && reader.open)
      return refuse(
          "`=` takes the instance with the reader's own values, and another step makes those of '" +
              reader.spec.name + "'",
          {}, "did you mean '" + selector.step + "[*]" + output + "'?");
    if (!target.matrix) return of_single_step();
    if (!selector.has_brackets && !output.empty()) return of_unnamed();
    if (!selector.has_brackets || selector.all) return of_all();
    if (selector.index) return of_index(*selector.index);
    return of_axes();
  }

 private:
  /// For each axis of the target, the value that the selector has for it.
  using Fixed = std::vector<const std::string*>;

  std::nullopt_t refuse(std::string message, std::vector<std::string> notes = {},
                        std::string suggestion = {}) const {
    settings::report(diagnostics, "bad-selector", std::move(message), span, std::move(notes),
                     std::move(suggestion));
    return std::nullopt;
  }

  static Selection single(std::uint32_t instance) {
    Selection selection;
    selection.groups[""].push_back(instance);
    return selection;
  }

  /// Selects from a target whose instances the run makes: all of them, or for a step with the same
  /// matrix the one with the same values.
  std::optional<Selection> of_open_matrix() const {
    const auto& source = target.open->spec.of;
    if (selector.all || (!selector.has_brackets && output.empty())) {
      auto selection = single(0);
      selection.is_gathered = !output.empty();
      return selection;
    }
    const bool has_same = reader.open && reader.open->spec.of == source;
    if (selector.same && selector.axes.empty() && !output.empty() && has_same) return single(0);
    return refuse(
        "the values of the matrix of '" + selector.step +
            "' are known only when the run has made them",
        {"'" + selector.step + "[*]" + output + "' takes all",
         "`" + selector.step + "[=]" + output +
             "` takes the one with the same values, in a step with `matrix: " + source + "`"});
  }

  std::optional<Selection> of_single_step() const {
    if (!selector.has_brackets) return single(0);
    return refuse("step '" + selector.step + "' has no matrix to pick from", {},
                  "did you mean '" + selector.step + output + "'?");
  }

  std::optional<Selection> of_unnamed() const {
    const auto& [axes, instances] = *target.matrix;
    return refuse(
        "the matrix of step '" + selector.step + "' makes " + std::to_string(instances.size()) +
            " steps of it: name one of them",
        {"'" + selector.step + "[*]" + output + "' gathers all in a folder, '" + selector.step +
         "[" + shown(axes, instances[0]) + "]" + output + "' is one of them"});
  }

  Selection of_all() const {
    Selection selection;
    selection.is_gathered = true;
    auto& all = selection.groups[""];
    all.resize(target.matrix->instances.size());
    std::iota(all.begin(), all.end(), 0);
    return selection;
  }

  std::optional<Selection> of_index(std::size_t index) const {
    const auto size = target.matrix->instances.size();
    if (index < size) return single(static_cast<std::uint32_t>(index));
    return refuse("the matrix of step '" + selector.step + "' makes " + std::to_string(size) +
                  " steps of it, from 0 to " + std::to_string(size - 1));
  }

  std::optional<Selection> of_axes() const {
    const auto& axes = target.matrix->axes;
    Fixed fixed(axes.size());
    Selection selection;
    bool is_good = true;
    for (const auto& [name, value] : selector.axes) {
      const auto axis = std::ranges::find(axes, name);
      if (axis == axes.end()) {
        refuse("the matrix of step '" + selector.step + "' has no axis '" + name + "'",
               {"it has: " + core::joined(axes, ", ")}, core::did_you_mean(name, axes));
        is_good = false;
        continue;
      }
      fixed[static_cast<std::size_t>(axis - axes.begin())] = &value;
      selection.is_gathered |= value == "*";
    }
    if (!is_good) return std::nullopt;
    if (selector.same && !reader.matrix)
      return refuse("`=` takes the instance with the reader's own values, but step '" +
                        reader.spec.name + "' has no matrix",
                    {}, "did you mean '" + selector.step + "[*]" + output + "'?");
    if (!read_same_axes(fixed, selection)) return std::nullopt;
    return grouped(fixed, std::move(selection));
  }

  /// Finds the reader's value for each axis that the selector does not fix. Returns false, and
  /// reports it, if the selector does not ask for the reader's values, or the reader has none.
  bool read_same_axes(const Fixed& fixed, Selection& selection) const {
    const auto& axes = target.matrix->axes;
    bool is_good = true;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if (fixed[i]) continue;
      const auto own = reader.matrix ? std::ranges::find(reader.matrix->axes, axes[i]) -
                                           reader.matrix->axes.begin()
                                     : 0;
      if (selector.same && own < std::ssize(reader.matrix->axes)) {
        selection.same.emplace_back(i, static_cast<std::size_t>(own));
        continue;
      }
      refuse(selector.same ? "'" + reader.spec.name + "' has no matrix axis '" + axes[i] +
                                 "', so `=` does not select one value"
                           : "this does not select a value of the matrix axis '" + axes[i] + "'",
             {"`" + axes[i] + "=*` gathers all in a folder, `" + axes[i] + "=" +
              model::axis_text(*target.matrix->instances[0][i]) + "` is one of them"});
      is_good = false;
    }
    return is_good;
  }

  std::optional<Selection> grouped(const Fixed& fixed, Selection selection) const {
    const auto& [axes, instances] = *target.matrix;
    const auto fits = [&](std::size_t axis, const Row& row) {
      return !fixed[axis] || model::stands_for(*fixed[axis], row[axis]);
    };
    for (std::uint32_t i = 0; i < instances.size(); ++i) {
      bool fits_all = true;
      for (std::size_t axis = 0; axis < axes.size() && fits_all; ++axis)
        fits_all = fits(axis, instances[i]);
      if (!fits_all) continue;
      std::string key;
      for (const auto& [target_axis, reader_axis] : selection.same)
        key += instances[i][target_axis]->dump() + '\n';
      selection.groups[key].push_back(i);
    }
    if (!selection.groups.empty()) return selection;
    std::vector<std::string> notes;
    std::string suggestion;
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      if (std::ranges::any_of(instances, [&](const Row& row) { return fits(axis, row); })) continue;
      std::vector<std::string> values;
      for (const Row& row : instances)
        if (auto text = model::axis_text(row[axis]);
            std::ranges::find(values, text) == values.end() && values.size() < max_values_shown)
          values.push_back(std::move(text));
      notes.push_back("the values of '" + axes[axis] + "': " + core::joined(values, ", "));
      if (suggestion.empty()) suggestion = core::did_you_mean(*fixed[axis], values);
    }
    if (notes.empty()) notes.emplace_back("its matrix has these values, but not together");
    return refuse("no step of '" + selector.step + "' has these values", std::move(notes),
                  std::move(suggestion));
  }
};

class Expansion {
 public:
  Expansion(std::vector<ReadStep>& steps, settings::Diagnostics& diagnostics)
      : steps_(steps), diagnostics_(diagnostics) {
    index_.reserve(steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i) index_.emplace(steps[i].key->scalar, i);
    names_.resize(steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const ReadStep& step = steps[i];
      if (!step.matrix) continue;
      model::InstanceNames names(step.spec.name);
      names_[i].reserve(step.matrix->instances.size());
      for (const Row& row : step.matrix->instances)
        names_[i].push_back(names.next(values_of(*step.matrix, row)));
    }
  }

  std::vector<StepSpec> run(std::vector<StepSpec> specs) {
    std::vector<StepSpec> all;
    std::size_t total = 0;
    for (std::size_t i = 0; i < steps_.size(); ++i)
      total += steps_[i].matrix ? names_[i].size() : 1;
    const bool has_instances =
        std::ranges::any_of(steps_, [](const ReadStep& step) { return step.matrix.has_value(); });
    if (has_instances) all.reserve(total);
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      ReadStep& step = steps_[i];
      read(step);
      if (connections_ > max_connections) break;
      if (step.matrix) {
        add_instances(step, names_[i], all);
        continue;
      }
      connect(step, nullptr, step.spec, 0);
      fill(step, nullptr, step.spec);
      if (step.open) step.spec.matrix = step.open->spec;
      if (has_instances) all.push_back(std::move(step.spec));
    }
    return has_instances ? std::move(all) : std::move(specs);
  }

 private:
  struct Connection {
    std::size_t target;
    Selection selection;
    std::size_t failures = 0;
  };

  /// Returns the values of an instance by axis; a number as the text that the user wrote.
  static model::AxisValues values_of(const Matrix& matrix, const Row& row) {
    model::AxisValues values;
    values.reserve(row.size());
    for (std::size_t i = 0; i < row.size(); ++i)
      values.emplace_back(matrix.axes[i],
                          row[i].written ? nlohmann::json(row[i].written->at("")) : *row[i]);
    return values;
  }

  void add_instances(const ReadStep& step, const std::vector<std::string>& names,
                     std::vector<StepSpec>& all) {
    const RareText of = step.spec.name;  // The instances share it, and the axes.
    const SharedList<std::string> axes(step.matrix->axes);
    for (std::size_t k = 0; k < names.size(); ++k) {
      const Row& row = step.matrix->instances[k];
      StepSpec& spec = all.emplace_back(step.spec);
      spec.name = names[k];
      spec.instance = InstanceSpec{.of = of, .axes = axes};
      for (std::size_t i = 0; i < row.size(); ++i) {
        spec.parameters[axes[i]] = row[i];
        if (!spec.when) continue;
        const auto used = spec.when->parameters.find("params." + axes[i]);
        if (used != spec.when->parameters.end()) used->second = row[i];
      }
      connect(step, &row, spec, k);
      fill(step, &row, spec);
    }
  }

  /// Fills parameters into the parts of the step that refer to them. Reports the errors of the
  /// first few instances that have any, because the other instances often have the same ones.
  void fill(const ReadStep& step, const Row* row, StepSpec& spec) {
    if (!step.must_be_filled() || failed_fills_[&step] == max_failures_shown) return;
    auto values = step.filled_from;
    for (std::size_t i = 0; row && i < row->size(); ++i) values[step.matrix->axes[i]] = (*row)[i];
    const auto before = diagnostics_.size();
    step.reader->fill(step, values, spec);
    failed_fills_[&step] += diagnostics_.size() > before;
  }

  /// Returns the name of an instance. The name of a step without a matrix comes from the document,
  /// because its spec may have been moved from.
  const std::string& name_of(std::size_t step, std::size_t instance) const {
    return steps_[step].matrix ? names_[step][instance] : steps_[step].key->scalar;
  }

  /// Resolves the step's references once for all its instances.
  void read(const ReadStep& step) {
    inputs_.clear();
    values_.clear();
    thens_.clear();
    untils_.clear();
    after_.clear();
    const auto add = [&](std::vector<std::optional<Connection>>& list,
                         const model::Selector& selector, const std::string& output,
                         core::Span span) {
      const auto found = index_.find(selector.step);
      if (found == index_.end())
        return list.push_back(std::nullopt);  // check_references() has reported it.
      auto selection =
          Reading{selector, steps_[found->second], step, output, span, diagnostics_}.select();
      if (!selection) return list.push_back(std::nullopt);
      auto& made = list.emplace_back(Connection{found->second, std::move(*selection)});
      const auto* all = made->selection.find(nullptr);
      connections_ += (all ? all->size() : 1) * (step.matrix ? step.matrix->instances.size() : 1);
      if (connections_ > max_connections)
        settings::report(
            diagnostics_, "bad-matrix",
            "step '" + step.spec.name + "' makes more than " + std::to_string(max_connections) +
                " connections between steps",
            span,
            {core::counted(step.matrix ? step.matrix->instances.size() : 1, "instance") +
             " of it wait for " + core::counted(all ? all->size() : 1, "instance") + " of '" +
             selector.step + "' each: put one step in between"});
    };
    for (std::size_t i = 0; i < step.inputs.size(); ++i)
      if (step.spec.inputs[i].data)
        inputs_.push_back(std::nullopt);
      else
        add_input(step, i, add);
    const auto add_values = [&](std::vector<std::optional<Connection>>& list,
                                const RareList<ReadStep::ConditionValue>& values,
                                const Rare<Condition>& condition) {
      for (const auto& value : values) {
        add(list, value.selector, "." + condition->outputs.at(value.name).source.output,
            value.span);
        if (list.back() && list.back()->selection.is_gathered)
          settings::report(diagnostics_, "bad-selector",
                           "a condition takes the output of one step, not of all instances of '" +
                               value.selector.step + "'",
                           value.span, {},
                           "let a step gather them and write the value that decides");
      }
    };
    add_values(values_, step.condition_values, step.spec.when);
    if (step.spec.repeat) add_values(untils_, step.until_values, step.spec.repeat->until);
    for (const auto& then : step.then_sources) {
      add(thens_, then.selector, "." + step.spec.inputs[then.input].then->output, then.span);
      for (const auto* source : {&inputs_[then.input], &thens_.back()})
        if (*source && (*source)->selection.is_gathered)
          settings::report(diagnostics_, "bad-selector",
                           "`first` and `then` take the output of one step each", then.span, {},
                           "let a step gather them in each round");
    }
    for (const auto& [selector, span] : step.after) add(after_, selector, "", span);
    check_items(step);
  }

  /// @param add resolves a reference and adds it to a list
  template <class Add>
  void add_input(const ReadStep& step, std::size_t i, const Add& add) {
    const auto& input = step.spec.inputs[i];
    const auto& [selector, span] = step.inputs[i];
    add(inputs_, selector, "." + input.sources[0].output, span);
    if (!input.at_least || !inputs_.back()) return;
    const auto& selection = inputs_.back()->selection;
    const auto* all = selection.find(nullptr);
    if (!selection.is_gathered)
      settings::report(diagnostics_, "bad-selector",
                       "'missing' and 'at_least' are for an input that gathers the outputs of "
                       "several steps, and this takes one",
                       span, {"as in `{from: train[*].model, missing: allow}`"});
    else if (all && !steps_[inputs_.back()->target].open && *input.at_least > all->size())
      settings::report(diagnostics_, "contradiction",
                       "'at_least' is " + std::to_string(*input.at_least) + ", and this gathers " +
                           std::to_string(all->size()),
                       span);
  }

  /// Reports values of a matrix that would come from many steps.
  void check_items(const ReadStep& step) {
    if (!step.open || step.open->spec.of != step.spec.name) return;
    for (std::size_t i = 0; i < step.open->spans.size(); ++i) {
      const auto& items = step.open->spec.axes[i].items;
      const auto found = items ? index_.find(items->source.step) : index_.end();
      if (found == index_.end() || !steps_[found->second].body->find("matrix")) continue;
      settings::report(diagnostics_, "bad-matrix",
                       "step '" + items->source.step +
                           "' has a matrix itself, so it makes many "
                           "such outputs",
                       step.open->spans[i], {}, "let a step gather them and write one list");
    }
  }

  /// Returns the instances of the target that a reference takes for instance `k` of the step; null
  /// after an error, which is reported. @param row the instance's values; null without a matrix
  const std::vector<std::uint32_t>* picked(const ReadStep& step,
                                           std::optional<Connection>& connection, const Row* row,
                                           std::size_t k, const model::Selector& selector,
                                           core::Span span) {
    if (!connection) return nullptr;
    const auto* found = connection->selection.find(row);
    if (!found && connection->failures++ < max_failures_shown)
      settings::report(diagnostics_, "bad-selector",
                       "no step of '" + selector.step + "' has the values of '" + step.spec.name +
                           "[" + shown(step.matrix->axes, step.matrix->instances[k]) + "]'",
                       span);
    return found;
  }

  /// Sets the sources of the inputs, conditions and order of instance `k` of the step.
  void connect(const ReadStep& step, const Row* row, StepSpec& spec, std::size_t k) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const auto* sources =
          picked(step, inputs_[i], row, k, step.inputs[i].selector, step.inputs[i].span);
      if (!sources) continue;
      auto& input = spec.inputs[i];
      const std::string output = input.sources[0].output;
      input.sources.clear();
      for (const auto source : *sources)
        input.sources.push_back({name_of(inputs_[i]->target, source), output});
      input.sources.shrink_to_fit();
      input.gathered = inputs_[i]->selection.is_gathered;
    }
    connect_values(step, row, k, values_, step.condition_values, spec.when);
    if (spec.repeat) connect_values(step, row, k, untils_, step.until_values, spec.repeat->until);
    for (std::size_t i = 0; i < thens_.size(); ++i) {
      const auto& then = step.then_sources[i];
      if (const auto* sources = picked(step, thens_[i], row, k, then.selector, then.span))
        spec.inputs[then.input].then->step = name_of(thens_[i]->target, sources->front());
    }
    if (after_.empty()) return;
    std::vector<std::string> after;
    for (std::size_t i = 0; i < after_.size(); ++i)
      if (const auto* steps =
              picked(step, after_[i], row, k, step.after[i].selector, step.after[i].span))
        for (const auto other : *steps) after.push_back(name_of(after_[i]->target, other));
    spec.after = std::move(after);
  }

  void connect_values(const ReadStep& step, const Row* row, std::size_t k,
                      std::vector<std::optional<Connection>>& connections,
                      const RareList<ReadStep::ConditionValue>& values,
                      Rare<Condition>& condition) {
    for (std::size_t i = 0; i < connections.size(); ++i)
      if (const auto* sources =
              picked(step, connections[i], row, k, values[i].selector, values[i].span))
        condition->outputs.at(values[i].name).source.step =
            name_of(connections[i]->target, sources->front());
  }

  std::vector<ReadStep>& steps_;
  settings::Diagnostics& diagnostics_;
  std::unordered_map<std::string_view, std::size_t> index_;
  std::vector<std::vector<std::string>>
      names_;  ///< Names of the instances of each step with a matrix.
  std::vector<std::optional<Connection>> inputs_, values_, thens_, untils_, after_;
  std::size_t connections_ = 0;
  std::unordered_map<const ReadStep*, std::size_t> failed_fills_;
};

}  // namespace

std::vector<StepSpec> expand(std::vector<ReadStep>& steps, std::vector<StepSpec> specs,
                             settings::Diagnostics& diagnostics) {
  return Expansion(steps, diagnostics).run(std::move(specs));
}

}  // namespace pipeline::spec
