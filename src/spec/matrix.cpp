#include "spec/matrix.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "core/identifier.hpp"
#include "core/instance.hpp"
#include "settings/decode.hpp"
#include "spec/step_reader.hpp"

namespace pipeline::spec {
namespace {

using Row = std::vector<nlohmann::json>;

constexpr const char* kExpected = "a map of axes to lists of values, as `{c: [0.1, 1, 10]}`, or the name of a step that has one";

/// Reads one `matrix` that is written out.
class MatrixReader {
 public:
  MatrixReader(const ReadStep& step, Diagnostics& diagnostics) : step_(step), diagnostics_(diagnostics) {}

  std::optional<Matrix> read(const Value& map) {
    const auto before = diagnostics_.size();
    std::vector<Row> values;
    for (const auto& [name, list] : map.members)
      if (name.scalar != "include" && name.scalar != "exclude") read_axis(name, list, values);
    const Value* include = map.find("include");
    if (matrix_.axes.empty() && include && include->kind == Value::Kind::list && !include->items.empty())
      for (const auto& [name, value] : include->items[0].members) add_axis(name);  // all of it is listed
    if (matrix_.axes.empty() && diagnostics_.size() == before)
      report(diagnostics_, "bad-matrix", "the matrix of step '" + step_.spec.name + "' has no axis", map.span, {kExpected});
    if (!values.empty() && is_affordable(map, values)) multiply(values);
    if (const Value* exclude = map.find("exclude")) drop(*exclude);
    if (include) append(*include);
    if (diagnostics_.size() > before) return std::nullopt;
    if (matrix_.instances.empty()) {
      report(diagnostics_, "bad-matrix", "`exclude` leaves nothing of the matrix of step '" + step_.spec.name + "'", map.find("exclude")->span);
      return std::nullopt;
    }
    if (matrix_.instances.size() > kMostInstances) report_size(map, matrix_.instances.size(), {});
    return std::move(matrix_);
  }

 private:
  void add_axis(const Value& name) {
    if (!is_name(name.scalar) || name.scalar.find('.') != std::string::npos || (name.scalar[0] >= '0' && name.scalar[0] <= '9'))
      report(diagnostics_, "bad-name", "'" + name.scalar.substr(0, 60) + "' cannot be an axis of a matrix", name.span,
             {"an axis is a parameter: a name of letters, digits, `_` and `-` that begins with a letter"});
    matrix_.axes.push_back(name.scalar);
  }

  std::optional<nlohmann::json> read_value(const std::string& axis, const Value& item) {
    if (item.kind != Value::Kind::scalar)
      report_type(diagnostics_, axis, "a text, a number or a boolean", item);
    else if (!formats::text.accepts(item.scalar))
      report(diagnostics_, "control-character", "a value of axis '" + axis + "' has a control character in it", item.span);
    else if (auto json = scalar_to_json(item))
      return json;
    else
      report(diagnostics_, "bad-number", "the number " + item.scalar.substr(0, 40) + " is beyond what a parameter can hold", item.span,
             {"put it in quotes to pass it on as a text"});
    return std::nullopt;
  }

  void read_axis(const Value& name, const Value& list, std::vector<Row>& values) {
    add_axis(name);
    Row row;
    if (list.kind != Value::Kind::list) {
      report_type(diagnostics_, name.scalar, "a list of values", list);
      if (list.kind == Value::Kind::scalar) diagnostics_.back().suggestion = "did you mean `" + name.scalar + ": [" + list.scalar + "]`?";
    } else if (list.items.empty()) {
      report(diagnostics_, "bad-matrix", "the axis '" + name.scalar + "' has no values", list.span,
             {"step '" + step_.spec.name + "' would not run at all"});
    } else {
      std::unordered_set<std::string> seen;
      row.reserve(list.items.size());
      for (const Value& item : list.items) {
        auto value = read_value(name.scalar, item);
        if (!value) continue;
        if (!seen.insert(value->dump()).second)
          report(diagnostics_, "bad-matrix", "the axis '" + name.scalar + "' has the value " + item.scalar + " twice", item.span);
        row.push_back(std::move(*value));
      }
    }
    values.push_back(std::move(row));
  }

  void report_size(const Value& map, std::size_t size, std::vector<std::string> notes) {
    report(diagnostics_, "bad-matrix",
           "the matrix of step '" + step_.spec.name + "' makes " + std::to_string(size) + " steps of it, more than " + std::to_string(kMostInstances),
           map.span, std::move(notes));
  }

  bool is_affordable(const Value& map, const std::vector<Row>& values) {
    std::size_t size = 1;
    std::string lengths;
    for (std::size_t i = 0; i < values.size(); ++i) {
      size = values[i].size() > kMostInstances * 1000 / size ? kMostInstances * 1000 : size * values[i].size();
      lengths += (i ? ", " : "it has: ") + matrix_.axes[i] + " " + std::to_string(values[i].size());
    }
    if (size > kMostInstances) report_size(map, size, {lengths});
    return size <= kMostInstances;
  }

  void multiply(const std::vector<Row>& values) {
    std::vector<Row> rows{{}};
    for (const Row& axis : values) {
      std::vector<Row> longer;
      longer.reserve(rows.size() * axis.size());
      for (const Row& row : rows)
        for (const auto& value : axis) (longer.emplace_back(row)).push_back(value);
      rows = std::move(longer);
    }
    matrix_.instances = std::move(rows);
  }

  /// A map of axes to values, as `include` and `exclude` list; nothing for an axis that it does not name.
  std::vector<std::optional<nlohmann::json>> read_row(const char* key, const Value& item) {
    std::vector<std::optional<nlohmann::json>> row(matrix_.axes.size());
    if (item.kind != Value::Kind::map) {
      report_type(diagnostics_, key, "a list of maps of axes to values", item);
      return row;
    }
    for (const auto& [name, value] : item.members) {
      const auto axis = std::ranges::find(matrix_.axes, name.scalar);
      if (axis == matrix_.axes.end())
        report(diagnostics_, "bad-matrix", std::string("`") + key + "` names '" + name.scalar + "', which is no axis of the matrix", name.span, {},
               did_you_mean(name.scalar, matrix_.axes));
      else
        row[static_cast<std::size_t>(axis - matrix_.axes.begin())] = read_value(name.scalar, value);
    }
    return row;
  }

  void drop(const Value& list) {
    if (list.kind != Value::Kind::list) return report_type(diagnostics_, "exclude", "a list of maps of axes to values", list);
    for (const Value& item : list.items) {
      const auto row = read_row("exclude", item);
      const auto dropped = std::erase_if(matrix_.instances, [&](const Row& instance) {
        for (std::size_t i = 0; i < row.size(); ++i)
          if (row[i] && *row[i] != instance[i]) return false;
        return true;
      });
      if (dropped == 0 && !matrix_.instances.empty() && item.kind == Value::Kind::map)
        report(diagnostics_, "bad-matrix", "this excludes nothing", item.span, {"no combination has these values, or one before it excludes them"});
    }
  }

  void append(const Value& list) {
    if (list.kind != Value::Kind::list) return report_type(diagnostics_, "include", "a list of maps of axes to values", list);
    std::unordered_set<std::string> seen;
    for (const Row& instance : matrix_.instances) seen.insert(nlohmann::json(instance).dump());
    for (const Value& item : list.items) {
      const auto row = read_row("include", item);
      Row instance;
      for (std::size_t i = 0; i < row.size(); ++i) {
        if (row[i])
          instance.push_back(*row[i]);
        else if (item.kind == Value::Kind::map && !item.find(matrix_.axes[i]))
          report(diagnostics_, "bad-matrix", "this names no value for the axis '" + matrix_.axes[i] + "'", item.span,
                 {"what `include` adds is one whole combination"});
      }
      if (instance.size() < row.size()) continue;
      if (!seen.insert(nlohmann::json(instance).dump()).second)
        report(diagnostics_, "bad-matrix", "the matrix has this combination already", item.span);
      matrix_.instances.push_back(std::move(instance));
    }
  }

  const ReadStep& step_;
  Diagnostics& diagnostics_;
  Matrix matrix_;
};

/// An axis is one more parameter of the step: neither its name nor its variable may be another's.
void check_parameters(const ReadStep& step, Diagnostics& diagnostics) {
  const Value* own = step.body->find("parameters");
  std::unordered_map<std::string, std::string> variables;
  for (const auto& [name, value] : step.spec.parameters) variables.emplace(variable_name("", name), name);
  for (const auto& axis : step.matrix->axes) {
    if (const Value* value = own ? own->find(axis) : nullptr)
      report(diagnostics, "contradiction", "'" + axis + "' of step '" + step.spec.name + "' is both under 'parameters' and an axis of its matrix",
             value->span);
    const auto [other, is_new] = variables.emplace(variable_name("", axis), axis);
    if (!is_new && other->second != axis)
      report(diagnostics, "contradiction",
             "'" + other->second + "' and '" + axis + "' of step '" + step.spec.name + "' both become the variable PIPE_PARAM_" + other->first,
             step.key->span);
  }
}

}  // namespace

void read_matrices(std::vector<ReadStep>& steps, Diagnostics& diagnostics) {
  std::unordered_map<std::string_view, ReadStep*> by_name;
  bool has_some = false;
  for (ReadStep& step : steps) {
    const Value* value = step.body->find("matrix");
    has_some |= value != nullptr;
    if (value && value->kind == Value::Kind::map) step.matrix = MatrixReader(step, diagnostics).read(*value);
    if (step.spec.name.size() > kLongestBase && value)
      report(diagnostics, "bad-name", "the name of a step with a matrix can have at most " + std::to_string(kLongestBase) + " characters",
             step.key->span, {"those that are made of it have longer ones"});
  }
  if (!has_some) return;
  for (ReadStep& step : steps) by_name.emplace(step.spec.name, &step);
  std::vector<std::pair<ReadStep*, const ReadStep*>> followers;
  for (ReadStep& step : steps) {
    const Value* value = step.body->find("matrix");
    if (!value || value->kind == Value::Kind::map) continue;
    if (value->kind != Value::Kind::scalar) {
      report_type(diagnostics, "matrix", kExpected, *value);
      continue;
    }
    const auto other = by_name.find(value->scalar);
    const Value* its = other == by_name.end() ? nullptr : other->second->body->find("matrix");
    const auto suggestion = [&] {
      std::vector<std::string> names;
      for (const ReadStep& each : steps)
        if (const Value* matrix = each.body->find("matrix"); matrix && matrix->kind == Value::Kind::map) names.push_back(each.spec.name);
      return did_you_mean(value->scalar, names);
    };
    if (other == by_name.end())
      report(diagnostics, "unknown-step", "there is no step '" + value->scalar + "' to have the matrix of", value->span, {}, suggestion());
    else if (!its || its->kind != Value::Kind::map)
      report(diagnostics, "bad-matrix", "step '" + value->scalar + "' has no matrix of its own", value->span, {},
             its && its->kind == Value::Kind::scalar ? "did you mean `matrix: " + its->scalar + "`?" : suggestion());
    else
      followers.emplace_back(&step, other->second);
  }
  for (const auto& [step, leader] : followers) step->matrix = leader->matrix;
  for (ReadStep& step : steps)
    if (step.matrix) check_parameters(step, diagnostics);
}

}  // namespace pipeline::spec
