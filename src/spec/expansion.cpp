#include "spec/expansion.hpp"

#include <algorithm>
#include <unordered_map>

#include "settings/decode.hpp"

namespace pipeline::spec {
namespace {

using Row = std::vector<nlohmann::json>;

/// Maximum number of connections between steps. A matrix that reads all instances of another one
/// multiplies them.
constexpr std::size_t most_connections = 2'000'000;
constexpr std::size_t most_failures_shown = 3;

/// Formats one combination of values as `c=0.1,kernel=rbf`.
std::string shown(const std::vector<std::string>& axes, const Row& row) {
  std::string text;
  for (std::size_t i = 0; i < axes.size(); ++i)
    text += (i ? "," : "") + axes[i] + "=" + model::axis_text(row[i]);
  return text;
}

/// The instances of one step that a selector picks, for each instance of the reading step.
class Selection {
 public:
  /// Reports a selector that does not fit the target and then picks nothing.
  /// @param target the step that is read
  /// @param output the output that is read, such as `.model`, for messages
  Selection(const model::Selector& selector, const ReadStep& target, const ReadStep& reader,
            const std::string& output, core::Span span, settings::Diagnostics& diagnostics)
      : target_(target) {
    const auto is_broken = [](const ReadStep& step) {
      return !step.matrix && !step.open && step.body->find("matrix");
    };
    if (is_broken(target) || (selector.same && is_broken(reader)))
      return;  // An error has been reported already.
    if (target.open) {
      pick_open(selector, reader, output, span, diagnostics);
      return;
    }
    if (selector.same && reader.open) {
      settings::report(
          diagnostics, "bad-selector",
          "`=` takes what has the reader's own values, and another step makes those of "
          "'" +
              reader.spec.name + "'",
          span, {}, "did you mean '" + selector.step + "[*]" + output + "'?");
      return;
    }
    if (!target.matrix) {
      if (selector.has_brackets)
        settings::report(diagnostics, "bad-selector",
                         "step '" + selector.step + "' has no matrix to pick from", span, {},
                         "did you mean '" + selector.step + output + "'?");
      else
        groups_[""].push_back(0);
      return;
    }
    const auto& axes = target.matrix->axes;
    const auto size = target.matrix->instances.size();
    const auto example =
        selector.step + "[" + shown(axes, target.matrix->instances[0]) + "]" + output;
    if (!selector.has_brackets && !output.empty()) {
      settings::report(diagnostics, "bad-selector",
                       "step '" + selector.step + "' is " + std::to_string(size) +
                           " steps, by its matrix: say which one is meant",
                       span,
                       {"'" + selector.step + "[*]" + output + "' gathers all in a folder, '" +
                        example + "' is one of them"});
      return;
    }
    if (!selector.has_brackets || selector.all) {
      is_gathered_ = true;
      auto& all = groups_[""];
      for (std::uint32_t i = 0; i < size; ++i) all.push_back(i);
      return;
    }
    if (selector.index) {
      if (*selector.index < size)
        groups_[""].push_back(static_cast<std::uint32_t>(*selector.index));
      else
        settings::report(diagnostics, "bad-selector",
                         "step '" + selector.step + "' is " + std::to_string(size) +
                             " steps, from 0 to " + std::to_string(size - 1),
                         span);
      return;
    }
    if (read_axes(selector, reader, output, span, diagnostics)) group(selector, span, diagnostics);
  }

  bool is_gathered() const { return is_gathered_; }
  /// Returns the instances that a reader with these values takes; null if there are none.
  const std::vector<std::uint32_t>* of(const Row* reader) const {
    std::string key;
    if (reader)
      for (const auto& [own, its] : same_) key += (*reader)[its].dump() + '\n';
    const auto found = groups_.find(key);
    return found == groups_.end() ? nullptr : &found->second;
  }
  bool is_empty() const { return groups_.empty(); }

 private:
  /// Picks from a step whose instances the run makes: all of them, or for a step with the same
  /// matrix the one with the same values.
  void pick_open(const model::Selector& selector, const ReadStep& reader, const std::string& output,
                 core::Span span, settings::Diagnostics& diagnostics) {
    const bool has_same = reader.open && reader.open->spec.of == target_.open->spec.of;
    const bool is_same = selector.same && selector.axes.empty() && !output.empty();
    if (selector.all || (!selector.has_brackets && output.empty())) {
      is_gathered_ = !output.empty();
      groups_[""].push_back(0);
    } else if (is_same && has_same) {
      groups_[""].push_back(0);
    } else {
      settings::report(diagnostics, "bad-selector",
                       "the values of the matrix of '" + selector.step +
                           "' are known only when the run has made "
                           "them",
                       span,
                       {"'" + selector.step + "[*]" + output + "' takes all",
                        "`" + selector.step + "[=]" + output +
                            "` takes the one with the same values, in a step "
                            "with `matrix: " +
                            target_.open->spec.of + "`"});
    }
  }

  bool read_axes(const model::Selector& selector, const ReadStep& reader, const std::string& output,
                 core::Span span, settings::Diagnostics& diagnostics) {
    const auto& axes = target_.matrix->axes;
    fixed_.resize(axes.size());
    bool is_good = true;
    for (const auto& [name, value] : selector.axes) {
      const auto axis = std::ranges::find(axes, name);
      if (axis == axes.end()) {
        std::string list;
        for (const auto& each : axes) list += (list.empty() ? "it has: " : ", ") + each;
        settings::report(diagnostics, "bad-selector",
                         "the matrix of step '" + selector.step + "' has no axis '" + name + "'",
                         span, {list}, core::did_you_mean(name, axes));
        is_good = false;
        continue;
      }
      fixed_[static_cast<std::size_t>(axis - axes.begin())] = &value;
      is_gathered_ |= value == "*";
    }
    if (!is_good) return false;
    if (selector.same && !reader.matrix) {
      settings::report(diagnostics, "bad-selector",
                       "`=` takes what has the reader's own values, but step '" + reader.spec.name +
                           "' has no matrix",
                       span, {}, "did you mean '" + selector.step + "[*]" + output + "'?");
      return false;
    }
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if (fixed_[i]) continue;
      const auto own = reader.matrix ? std::ranges::find(reader.matrix->axes, axes[i]) -
                                           reader.matrix->axes.begin()
                                     : 0;
      if (selector.same && own < std::ssize(reader.matrix->axes)) {
        same_.emplace_back(i, static_cast<std::size_t>(own));
        continue;
      }
      settings::report(diagnostics, "bad-selector",
                       selector.same ? "'" + axes[i] + "' is no axis of '" + reader.spec.name +
                                           "', so `=` does not say which one is meant"
                                     : "this does not say which '" + axes[i] + "' is meant",
                       span,
                       {"`" + axes[i] + "=*` gathers all in a folder, `" + axes[i] + "=" +
                        model::axis_text(target_.matrix->instances[0][i]) + "` is one of them"});
      is_good = false;
    }
    return is_good;
  }

  void group(const model::Selector& selector, core::Span span, settings::Diagnostics& diagnostics) {
    const auto& [axes, instances] = *target_.matrix;
    for (std::uint32_t i = 0; i < instances.size(); ++i) {
      bool fits = true;
      for (std::size_t axis = 0; axis < axes.size() && fits; ++axis)
        fits = !fixed_[axis] || model::stands_for(*fixed_[axis], instances[i][axis]);
      if (!fits) continue;
      std::string key;
      for (const auto& [own, its] : same_) key += instances[i][own].dump() + '\n';
      groups_[key].push_back(i);
    }
    if (!groups_.empty()) return;
    std::vector<std::string> notes;
    std::string suggestion;
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      if (!fixed_[axis]) continue;
      std::vector<std::string> values;
      for (const Row& row : instances)
        if (auto text = model::axis_text(row[axis]);
            std::ranges::find(values, text) == values.end() && values.size() < 20)
          values.push_back(std::move(text));
      if (std::any_of(instances.begin(), instances.end(),
                      [&](const Row& row) { return model::stands_for(*fixed_[axis], row[axis]); }))
        continue;
      std::string list;
      for (const auto& value : values) list += (list.empty() ? "" : ", ") + value;
      notes.push_back("the values of '" + axes[axis] + "': " + list);
      if (suggestion.empty()) suggestion = core::did_you_mean(*fixed_[axis], values);
    }
    if (notes.empty()) notes.push_back("its matrix has these values, but not together");
    settings::report(diagnostics, "bad-selector",
                     "no step of '" + selector.step + "' has these values", span, std::move(notes),
                     std::move(suggestion));
  }

  const ReadStep& target_;
  bool is_gathered_ = false;
  std::vector<const std::string*> fixed_;  ///< For each axis of the target, the selector's value.
  std::vector<std::pair<std::size_t, std::size_t>>
      same_;  ///< Axes of the target that must have the values of these axes of the reader.
  std::unordered_map<std::string, std::vector<std::uint32_t>> groups_;
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
      if (connections_ > most_connections) break;
      if (step.matrix) {
        add_instances(step, names_[i], all);
        continue;
      }
      connect(step, nullptr, step.spec, 0);
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

  static model::AxisValues values_of(const Matrix& matrix, const Row& row) {
    model::AxisValues values;
    values.reserve(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) values.emplace_back(matrix.axes[i], row[i]);
    return values;
  }

  void add_instances(const ReadStep& step, const std::vector<std::string>& names,
                     std::vector<StepSpec>& all) {
    for (std::size_t k = 0; k < names.size(); ++k) {
      const Row& row = step.matrix->instances[k];
      StepSpec& spec = all.emplace_back(step.spec);
      spec.name = names[k];
      const auto values = values_of(*step.matrix, row);
      spec.instance = InstanceSpec{.of = step.spec.name, .values = {values.begin(), values.end()}};
      for (const auto& [axis, value] : spec.instance->values) {
        spec.parameters[axis] = value;
        if (!spec.when) continue;
        const auto used = spec.when->parameters.find("params." + axis);
        if (used != spec.when->parameters.end()) used->second = value;
      }
      connect(step, &row, spec, k);
    }
  }

  /// Taken from the document if the step has no matrix: its spec may have been moved from.
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
      auto& made =
          list.emplace_back(Connection{found->second, Selection(selector, steps_[found->second],
                                                                step, output, span, diagnostics_)});
      const auto* all = made->selection.of(nullptr);
      connections_ += (all ? all->size() : 1) * (step.matrix ? step.matrix->instances.size() : 1);
      if (connections_ > most_connections)
        settings::report(
            diagnostics_, "bad-matrix",
            "step '" + step.spec.name + "' makes more than " + std::to_string(most_connections) +
                " connections between steps",
            span,
            {"each of its " + std::to_string(step.matrix ? step.matrix->instances.size() : 1) +
             " waits for " + std::to_string(all ? all->size() : 1) + " of '" + selector.step +
             "': put one step in between"});
    };
    for (std::size_t i = 0; i < step.input_selectors.size(); ++i)
      if (step.spec.inputs[i].data)
        inputs_.push_back(std::nullopt);
      else
        add(inputs_, step.input_selectors[i], "." + step.spec.inputs[i].sources[0].output,
            step.input_spans[i]);
    const auto add_values = [&](std::vector<std::optional<Connection>>& list,
                                const std::vector<ReadStep::ConditionValue>& values,
                                const Rare<Condition>& condition) {
      for (const auto& value : values) {
        add(list, value.selector, "." + condition->outputs.at(value.name).source.output,
            value.span);
        if (list.back() && list.back()->selection.is_gathered())
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
      for (const auto* end : {&inputs_[then.input], &thens_.back()})
        if (*end && (*end)->selection.is_gathered())
          settings::report(diagnostics_, "bad-selector",
                           "`first` and `then` take the output of one step each", then.span, {},
                           "let a step gather them in each round");
    }
    for (std::size_t i = 0; i < step.after_selectors.size(); ++i)
      add(after_, step.after_selectors[i], "", step.after_spans[i]);
    check_items(step);
  }

  /// Reports values of a matrix that are to come from many steps.
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

  const std::vector<std::uint32_t>* picked(const ReadStep& step,
                                           std::optional<Connection>& connection, const Row* row,
                                           std::size_t k, const model::Selector& selector,
                                           core::Span span) {
    if (!connection || connection->selection.is_empty()) return nullptr;
    const auto* found = connection->selection.of(row);
    if (!found && connection->failures++ < most_failures_shown)
      settings::report(diagnostics_, "bad-selector",
                       "no step of '" + selector.step + "' has the values of '" + step.spec.name +
                           "[" + shown(step.matrix->axes, step.matrix->instances[k]) + "]'",
                       span);
    return found;
  }

  void connect(const ReadStep& step, const Row* row, StepSpec& spec, std::size_t k) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const auto* sources =
          picked(step, inputs_[i], row, k, step.input_selectors[i], step.input_spans[i]);
      if (!sources) continue;
      auto& input = spec.inputs[i];
      const std::string output = input.sources[0].output;
      input.sources.clear();
      input.sources.reserve(sources->size());
      for (const auto source : *sources)
        input.sources.push_back({name_of(inputs_[i]->target, source), output});
      input.gathered = inputs_[i]->selection.is_gathered();
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
              picked(step, after_[i], row, k, step.after_selectors[i], step.after_spans[i]))
        for (const auto other : *steps) after.push_back(name_of(after_[i]->target, other));
    spec.after = std::move(after);
  }

  void connect_values(const ReadStep& step, const Row* row, std::size_t k,
                      std::vector<std::optional<Connection>>& connections,
                      const std::vector<ReadStep::ConditionValue>& values,
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
  std::vector<std::vector<std::string>> names_;  ///< Of the instances of each step with a matrix.
  std::vector<std::optional<Connection>> inputs_, values_, thens_, untils_, after_;
  std::size_t connections_ = 0;
};

}  // namespace

std::vector<StepSpec> expand(std::vector<ReadStep>& steps, std::vector<StepSpec> specs,
                             settings::Diagnostics& diagnostics) {
  return Expansion(steps, diagnostics).run(std::move(specs));
}

}  // namespace pipeline::spec
