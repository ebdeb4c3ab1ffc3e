#include "spec/matrix.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "core/identifier.hpp"
#include "core/joined.hpp"
#include "core/project.hpp"
#include "core/text.hpp"
#include "model/instance.hpp"
#include "settings/decode.hpp"
#include "spec/include.hpp"
#include "spec/likely_list.hpp"
#include "spec/memory_budget.hpp"
#include "spec/parameter_value.hpp"
#include "spec/step_reader.hpp"
#include "spec/table_file.hpp"
#include "spec/user_files.hpp"

namespace pipeline::spec {
namespace {

using model::max_instances;
using Row = std::vector<Json>;

constexpr const char* expected_text =
    "a map of axes to lists of values, as `{c: [0.1, 1, 10]}`, or the name of a step that has one";
constexpr const char* expected_items =
    "`${STEP.OUTPUT[*]}`, for the items of a JSON list or folder that a step makes, "
    "`${STEP.OUTPUT.MEMBER[*]}`, or `${params.NAME[*]}`, for those of a list";

/// Parses `${STEP.OUTPUT.MEMBER[*]}`; returns nothing for another form.
std::optional<OutputValue> items_named(std::string_view text) {
  constexpr std::string_view begin = "${", end = "[*]}";
  if (!text.starts_with(begin) || !text.ends_with(end)) return std::nullopt;
  const auto inner = text.substr(begin.size(), text.size() - begin.size() - end.size());
  if (inner.find_first_of("[]{}$ ") != std::string_view::npos) return std::nullopt;
  const auto parts = core::split(inner, '.');
  if (parts.size() < 2 || std::ranges::any_of(parts, &std::string_view::empty)) return std::nullopt;
  OutputValue value{{std::string(parts[0]), std::string(parts[1])}, {}};
  value.path.assign(parts.begin() + 2, parts.end());
  return value;
}

/// Reads one `matrix` that lists its axes.
class MatrixReader {
 public:
  MatrixReader(const ReadStep& step, MemoryBudget& budget, settings::Diagnostics& diagnostics)
      : step_(step), budget_(budget), diagnostics_(diagnostics) {}

  std::optional<Matrix> read(const core::Value& map) {
    auto matrix = read_all(map);
    if (file_ && core::is_outside_project(*file_) && diagnostics_.size() > before_table_) {
      diagnostics_.resize(before_table_);
      settings::report(diagnostics_, "bad-matrix",
                       "the table '" + map.find("include")->scalar +
                           "' is not one of names and values that the matrix can have",
                       map.find("include")->span,
                       {"it is outside of the project, so messages do not show its content"});
    }
    return matrix;
  }

  /// Returns the matrix if another step makes some of its values, and nothing is wrong with it.
  std::optional<OpenMatrix> open() {
    if (!is_open_ || is_broken_) return std::nullopt;
    return std::move(open_);
  }

  /// The file that `include` names, if it names one.
  const std::optional<std::filesystem::path>& file() const { return file_; }

 private:
  std::optional<Matrix> read_all(const core::Value& map) {
    const auto before = diagnostics_.size();
    std::vector<Row> values;
    for (const auto& [name, list] : map.members)
      if (name.scalar != "include" && name.scalar != "exclude") read_axis(name, list, values);
    const core::Value* include = map.find("include");
    if (include && include->kind == core::Value::Kind::scalar) {
      file_ = user_path(include->scalar, step_.scope->folder());
      before_table_ = diagnostics_.size();
      rows_of_file_ = read_table(*file_, *include, budget_, diagnostics_);
      include = &rows_of_file_;
    }
    if (matrix_.axes.empty() && include && include->kind == core::Value::Kind::list &&
        !include->items.empty())
      for (const auto& [name, value] : include->items[0].members)
        add_axis(name);  // The rows of `include` alone define the matrix.
    if (is_open_) {
      check_open(map);
      return std::nullopt;
    }
    if (matrix_.axes.empty() && diagnostics_.size() == before)
      settings::report(diagnostics_, "bad-matrix",
                       "the matrix of step '" + step_.spec.name + "' has no axis", map.span,
                       {expected_text});
    const bool has_values =
        !values.empty() &&
        std::ranges::none_of(values, &Row::empty);  // Otherwise an error has been reported.
    if (has_values && is_affordable(map, values)) multiply(values);
    if (const core::Value* exclude = map.find("exclude")) drop(*exclude);
    if (include) append(*include);
    if (diagnostics_.size() > before) return std::nullopt;
    if (matrix_.instances.empty()) {
      settings::report(diagnostics_, "bad-matrix",
                       "`exclude` leaves nothing of the matrix of step '" + step_.spec.name + "'",
                       map.find("exclude")->span);
      return std::nullopt;
    }
    if (matrix_.instances.size() > max_instances) report_size(map, matrix_.instances.size(), {});
    return std::move(matrix_);
  }

  /// Reports keys that a matrix cannot have while its values are not known.
  void check_open(const core::Value& map) {
    open_.spec.of = step_.spec.name;
    for (const char* key : {"include", "exclude"})
      if (const core::Value* value = map.find(key)) {
        is_broken_ = true;
        settings::report(diagnostics_, "bad-matrix",
                         std::string("`") + key +
                             "` needs known values, and another step "
                             "makes some of step '" +
                             step_.spec.name + "'",
                         value->span, {}, "let that step write the values to leave out or add");
      }
    if (step_.spec.run_on != RunOn::success) {
      is_broken_ = true;
      settings::report(diagnostics_, "bad-matrix",
                       "step '" + step_.spec.name +
                           "' has a `run_on`, and a matrix with values that another step makes, "
                           "which may have failed",
                       map.span);
    }
  }

  void read_items(const core::Value& name, const core::Value& text) {
    is_open_ = true;
    auto items = items_named(text.scalar);
    is_broken_ |= !items;
    if (!items) {
      settings::report_type(diagnostics_, name.scalar, expected_items, text);
      if (text.scalar.ends_with('}') && text.scalar.find('[') == std::string::npos)
        diagnostics_.back().suggestion =
            "did you mean `" + text.scalar.substr(0, text.scalar.size() - 1) + "[*]}`?";
      return;
    }
    items->source.step = step_.scope->step_called(items->source.step);
    open_.spec.axes.push_back({name.scalar, {}, std::move(items)});
    open_.spans.push_back(text.span);
  }

  /// Returns the value that `${params.NAME[*]}` or `${params.NAME.MEMBER[*]}` refers to, if the
  /// text has that form: null for a wrong reference, which is reported.
  std::optional<Json> parameter_list(const core::Value& text) {
    if (text.kind != core::Value::Kind::scalar) return std::nullopt;
    const auto items = items_named(text.scalar);
    if (!items || items->source.step != "params") return std::nullopt;
    const auto found = step_.spec.parameters.find(items->source.output);
    if (found == step_.spec.parameters.end()) {
      std::vector<std::string> names;
      for (const auto& [each, value] : step_.spec.parameters) names.push_back(each);
      settings::report(diagnostics_, "unknown-reference",
                       "the step has no parameter '" + items->source.output + "'", text.span, {},
                       core::did_you_mean(items->source.output, names));
      return Json();
    }
    if (items->path.empty()) return found->second;
    const auto path = core::joined(items->path, ".");
    const auto member = member_of(found->first, *found->second, path);
    if (member.value) return part_of(found->second, *member.value, path);
    settings::report(diagnostics_, "unknown-reference", member.problem, text.span, {},
                     member.suggestion);
    return Json();
  }

  /// Returns the items of a list that is a parameter; reports values that cannot be an axis. A list
  /// or map among the items becomes its JSON text, as among the items that a step makes.
  Row values_of(const std::string& axis, const Json& parameter, const core::Value& text) {
    Row row;
    const auto& list = *parameter;
    if (list.is_null()) return row;
    const auto report = [&](const std::string& what) {
      settings::report(diagnostics_, "bad-matrix", "the axis '" + axis + "': " + what, text.span);
    };
    if (!list.is_array())
      report("`" + text.scalar + "` is " + kind_of(list) + ", not a list");
    else if (list.empty())
      report("`" + text.scalar + "` has no items, so step '" + step_.spec.name +
             "' would not run at all");
    std::unordered_set<std::string> seen;
    for (const auto& item : list.is_array() ? list : nlohmann::json::array()) {
      if (item.is_null()) report("an item of `" + text.scalar + "` is null");
      if (!seen.insert(item.dump()).second)
        report("`" + text.scalar + "` has the item " + item.dump() + " twice");
      row.push_back(item.is_structured() ? Json(item.dump())
                                         : part_of(parameter, item, std::to_string(row.size())));
    }
    return row;
  }

  void add_axis(const core::Value& name) {
    if (!core::is_name(name.scalar) || name.scalar.find('.') != std::string::npos ||
        (name.scalar[0] >= '0' && name.scalar[0] <= '9'))
      settings::report(diagnostics_, "bad-name",
                       "'" + name.scalar.substr(0, 60) + "' cannot be an axis of a matrix",
                       name.span,
                       {"an axis is a parameter: a name of letters, digits, `_` and `-` that "
                        "begins with a letter"});
    matrix_.axes.push_back(name.scalar);
  }

  std::optional<Json> read_value(const std::string& axis, const core::Value& item) {
    if (item.kind != core::Value::Kind::scalar)
      settings::report_type(diagnostics_, axis, "a text, a number or a boolean", item);
    else if (!settings::formats::text.accepts(item.scalar))
      settings::report(diagnostics_, "control-character",
                       "a value of axis '" + axis + "' has a control character", item.span);
    else
      return read_scalar(item, diagnostics_);
    return std::nullopt;
  }

  void read_axis(const core::Value& name, const core::Value& list, std::vector<Row>& values) {
    add_axis(name);
    Row row;
    const auto of_parameter = parameter_list(list);
    if (!of_parameter && list.kind == core::Value::Kind::scalar && list.scalar.starts_with("${"))
      return read_items(name, list);
    if (of_parameter) {
      row = values_of(name.scalar, *of_parameter, list);
    } else if (list.kind != core::Value::Kind::list) {
      settings::report_type(diagnostics_, name.scalar, "a list of values", list);
      if (list.kind == core::Value::Kind::scalar)
        diagnostics_.back().suggestion =
            "did you mean `" + name.scalar + ": [" + values_in(list.scalar) + "]`?";
    } else if (list.items.empty()) {
      settings::report(diagnostics_, "bad-matrix", "the axis '" + name.scalar + "' has no values",
                       list.span, {"step '" + step_.spec.name + "' would not run at all"});
    } else {
      std::unordered_map<std::string, std::string> seen;  // Texts by values.
      row.reserve(list.items.size());
      for (const core::Value& item : list.items) {
        auto value = read_value(name.scalar, item);
        if (!value) continue;
        if (!item.quoted && item.scalar.find("..") != item.scalar.npos &&
            values_in(item.scalar) != item.scalar)
          settings::report(
              diagnostics_, "bad-matrix",
              "'" + item.scalar + "' is one value of axis '" + name.scalar + "', not a range",
              item.span, {"put it in quotes if it is a text"},
              "did you mean `" + name.scalar + ": [" + values_in(item.scalar) + "]`?");
        const auto [first, is_new] = seen.try_emplace((*value)->dump(), item.scalar);
        if (!is_new)
          settings::report(
              diagnostics_, "bad-matrix",
              "the axis '" + name.scalar + "' has the value " + item.scalar + " twice", item.span,
              {},
              first->second == item.scalar
                  ? ""
                  : "in quotes, '" + first->second + "' and '" + item.scalar + "' are two texts");
        row.push_back(std::move(*value));
      }
    }
    open_.spec.axes.push_back({name.scalar, {row.begin(), row.end()}, {}});
    open_.spans.push_back(list.span);
    values.push_back(std::move(row));
  }

  void report_size(const core::Value& map, std::size_t size, std::vector<std::string> notes) {
    settings::report(diagnostics_, "bad-matrix",
                     "the matrix of step '" + step_.spec.name + "' makes " + std::to_string(size) +
                         " steps of it, more than " + std::to_string(max_instances),
                     map.span, std::move(notes));
  }

  bool is_affordable(const core::Value& map, const std::vector<Row>& values) {
    std::size_t size = 1;  // Stops growing far above the maximum, so that it cannot overflow.
    std::string lengths;
    for (std::size_t i = 0; i < values.size(); ++i) {
      size = values[i].size() > max_instances * 1000 / size ? max_instances * 1000
                                                            : size * values[i].size();
      lengths += (i ? ", " : "it has: ") + matrix_.axes[i] + " " + std::to_string(values[i].size());
    }
    if (size > max_instances) {
      report_size(map, size, {lengths});
      return false;
    }
    std::size_t row = 0;
    for (const auto& axis : values) row += model::memory_of(axis) / axis.size();
    return budget_.take(size, row, "the matrix of step '" + step_.spec.name + "'", map.span);
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

  /// Reads a map of axes to values in `include` or `exclude`; an absent axis has no value.
  std::vector<std::optional<Json>> read_row(const char* key, const core::Value& item) {
    std::vector<std::optional<Json>> row(matrix_.axes.size());
    if (item.kind != core::Value::Kind::map) {
      settings::report_type(diagnostics_, key, "a list of maps of axes to values", item);
      return row;
    }
    for (const auto& [name, value] : item.members) {
      const auto axis = std::ranges::find(matrix_.axes, name.scalar);
      if (axis == matrix_.axes.end())
        settings::report(diagnostics_, "bad-matrix",
                         std::string("`") + key + "` names '" + name.scalar +
                             "', which is not an axis of the matrix",
                         name.span, {}, core::did_you_mean(name.scalar, matrix_.axes));
      else
        row[static_cast<std::size_t>(axis - matrix_.axes.begin())] = read_value(name.scalar, value);
    }
    return row;
  }

  void drop(const core::Value& list) {
    if (list.kind != core::Value::Kind::list)
      return settings::report_type(diagnostics_, "exclude", "a list of maps of axes to values",
                                   list);
    for (const core::Value& item : list.items) {
      const auto row = read_row("exclude", item);
      const auto dropped = std::erase_if(matrix_.instances, [&](const Row& instance) {
        for (std::size_t i = 0; i < row.size(); ++i)
          if (row[i] && *row[i] != instance[i]) return false;
        return true;
      });
      if (dropped == 0 && !matrix_.instances.empty() && item.kind == core::Value::Kind::map)
        settings::report(diagnostics_, "bad-matrix", "this excludes nothing", item.span,
                         {"no combination has these values, or one before it excludes them"});
    }
  }

  void append(const core::Value& list) {
    if (list.kind != core::Value::Kind::list)
      return settings::report_type(diagnostics_, "include", "a list of maps of axes to values",
                                   list);
    std::unordered_set<std::string> seen;
    for (const Row& instance : matrix_.instances) seen.insert(nlohmann::json(instance).dump());
    for (const core::Value& item : list.items) {
      const auto row = read_row("include", item);
      Row instance;
      for (std::size_t i = 0; i < row.size(); ++i) {
        if (row[i])
          instance.push_back(*row[i]);
        else if (item.kind == core::Value::Kind::map && !item.find(matrix_.axes[i]))
          settings::report(diagnostics_, "bad-matrix",
                           "this names no value for the axis '" + matrix_.axes[i] + "'", item.span,
                           {"`include` adds whole combinations"});
      }
      if (instance.size() < row.size()) continue;
      if (!seen.insert(nlohmann::json(instance).dump()).second)
        settings::report(diagnostics_, "bad-matrix", "the matrix has this combination already",
                         item.span);
      matrix_.instances.push_back(std::move(instance));
    }
  }

  const ReadStep& step_;
  MemoryBudget& budget_;
  settings::Diagnostics& diagnostics_;
  Matrix matrix_;
  std::optional<std::filesystem::path> file_;
  std::size_t before_table_ = 0;  ///< Number of diagnostics before the file was read.
  core::Value rows_of_file_;
  OpenMatrix open_;  ///< All axes, if one of them has items of another step.
  bool is_open_ = false, is_broken_ = false;
};

/// An axis is also a parameter of the step, so its name and its variable must differ from those of
/// other parameters.
void check_parameters(const ReadStep& step, settings::Diagnostics& diagnostics) {
  const core::Value* own = step.body->find("parameters");
  std::unordered_map<std::string, std::string> variables;
  for (const auto& [name, value] : step.spec.parameters)
    variables.emplace(core::variable_name("", name), name);
  for (const auto& axis : axes_of(step)) {
    if (const core::Value* value = own ? own->find(axis) : nullptr)
      settings::report(diagnostics, "contradiction",
                       "'" + axis + "' of step '" + step.spec.name +
                           "' is both under 'parameters' and an axis of its matrix",
                       value->span);
    const auto [other, is_new] = variables.emplace(core::variable_name("", axis), axis);
    if (!is_new && other->second != axis)
      settings::report(diagnostics, "contradiction",
                       "'" + other->second + "' and '" + axis + "' of step '" + step.spec.name +
                           "' both become the variable PIPE_PARAM_" + other->first,
                       step.key->span);
  }
}

/// A step with `matrix: train`, and the step `train`, whose matrix the former copies.
using Follower = std::pair<ReadStep*, const ReadStep*>;

/// Reports that the step that `value` names has no matrix to copy.
/// @param named the step; null if there is none
void report_no_matrix(const core::Value& value, const ReadStep* named,
                      const std::vector<ReadStep>& steps, settings::Diagnostics& diagnostics) {
  const core::Value* copied = named ? named->body->find("matrix") : nullptr;
  std::vector<std::string> names;
  for (const ReadStep& each : steps)
    if (const core::Value* matrix = each.body->find("matrix");
        matrix && matrix->kind == core::Value::Kind::map)
      names.push_back(each.spec.name);
  settings::report(diagnostics, named ? "bad-matrix" : "unknown-step",
                   named ? "step '" + value.scalar + "' has no matrix of its own"
                         : "there is no step '" + value.scalar + "' whose matrix could be used",
                   value.span, {},
                   copied && copied->kind == core::Value::Kind::scalar
                       ? "did you mean `matrix: " + copied->scalar + "`?"
                       : core::did_you_mean(value.scalar, names));
}

std::vector<Follower> followers_in(std::vector<ReadStep>& steps,
                                   settings::Diagnostics& diagnostics) {
  std::unordered_map<std::string_view, const ReadStep*> by_name;
  by_name.reserve(steps.size());
  for (const ReadStep& step : steps) by_name.emplace(step.spec.name, &step);
  std::vector<Follower> followers;
  for (ReadStep& step : steps) {
    const core::Value* value = step.body->find("matrix");
    if (!value || value->kind == core::Value::Kind::map) continue;
    if (value->kind != core::Value::Kind::scalar) {
      settings::report_type(diagnostics, "matrix", expected_text, *value);
      continue;
    }
    const auto found = by_name.find(step.scope->step_called(value->scalar));
    const ReadStep* leader = found == by_name.end() ? nullptr : found->second;
    const core::Value* matrix = leader ? leader->body->find("matrix") : nullptr;
    if (matrix && matrix->kind == core::Value::Kind::map)
      followers.emplace_back(&step, leader);
    else
      report_no_matrix(*value, leader, steps, diagnostics);
  }
  return followers;
}

/// Copies the matrices of other steps, until the memory budget is spent.
void copy_matrices(const std::vector<Follower>& followers, MemoryBudget& budget) {
  std::unordered_map<const ReadStep*, std::size_t> rows;  // Bytes.
  for (const auto& [step, leader] : followers) {
    auto [bytes, is_new] = rows.try_emplace(leader);
    if (is_new && leader->matrix)
      for (const Row& row : leader->matrix->instances) bytes->second += model::memory_of(row);
    if (!budget.take(1, bytes->second, "the matrix of step '" + leader->spec.name + "'",
                     step->body->find("matrix")->span))
      return;
    step->matrix = leader->matrix;
    step->open = leader->open;
  }
}

}  // namespace

std::vector<std::string> axes_of(const ReadStep& step) {
  if (step.matrix) return step.matrix->axes;
  std::vector<std::string> axes;
  if (step.open)
    for (const auto& axis : step.open->spec.axes) axes.push_back(axis.name);
  return axes;
}

void read_matrices(std::vector<ReadStep>& steps, MemoryBudget& budget,
                   settings::Diagnostics& diagnostics) {
  bool has_some = false;
  for (ReadStep& step : steps) {
    const core::Value* value = step.body->find("matrix");
    has_some |= value != nullptr;
    if (value && value->kind == core::Value::Kind::map) {
      MatrixReader reader(step, budget, diagnostics);
      if (auto matrix = reader.read(*value)) step.matrix = std::move(*matrix);
      if (auto open = reader.open()) step.open = std::move(*open);
      if (reader.file()) step.files.push_back(*reader.file());
    }
    if (step.spec.name.size() > model::max_base_name && value)
      settings::report(diagnostics, "bad-name",
                       "the name of a step with a matrix can have at most " +
                           std::to_string(model::max_base_name) + " characters",
                       step.key->span, {"its instances have longer names"});
  }
  if (!has_some) return;
  copy_matrices(followers_in(steps, diagnostics), budget);
  for (ReadStep& step : steps)
    if (step.matrix || step.open) check_parameters(step, diagnostics);
}

}  // namespace pipeline::spec
