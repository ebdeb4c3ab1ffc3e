/// @file
/// Instances, the steps that a `matrix` makes of one step: their names, and the selectors by which
/// a user picks some of them, such as `train[c=0.1,kernel=*]`.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <pipeline/rare.hpp>

namespace pipeline::model {

/// The value of each axis, in the axes' order.
using AxisValues = std::vector<std::pair<std::string, nlohmann::json>>;

/// Returns the value as the user writes it: texts without quotes, other values as JSON.
std::string axis_text(const nlohmann::json& value);

/// Maximum length of the name of a step with a matrix; its instances' names are longer.
constexpr std::size_t max_base_name = 96;

/// Maximum number of a matrix's instances; a larger matrix is treated as a mistake.
constexpr std::size_t max_instances = 100'000;

/// Makes the names of a step's instances, such as `train.c-0.1.kernel-rbf`. Each is a valid name
/// (is_name()) and unique. If a value is too long, has invalid characters or gives a duplicate, the
/// name ends with digits of a digest of the values.
class InstanceNames {
 public:
  explicit InstanceNames(std::string base) : base_(std::move(base)) {}
  /// Returns the name for these values; without values the number from 0, as in `train.0`.
  std::string next(const AxisValues& values);

 private:
  std::string base_;
  std::unordered_set<std::string> taken_;
};

/// Returns `train` for `train.c-0.1`, the name of the step that the instance was made of. For a
/// step that is not an instance, returns its own name.
std::string_view base_name(std::string_view step);

/// Returns the name that a repeated step has in a round, counted from 0: `fit.round-2`.
std::string round_name(const std::string& step, unsigned round);
/// Returns the round, counted from 0, if `name` is a name that round_name() gives to `step`.
std::optional<unsigned> round_of(std::string_view name, std::string_view step);

/// A user's choice of steps: `STEP`, `STEP[*]`, `STEP[2]` (from 0), `STEP[=]`, or
/// `STEP[AXIS=VALUE,AXIS=*,=]`.
struct Selector {
  std::string step;
  bool has_brackets = false;
  bool all = false;   ///< `*`.
  bool same = false;  ///< `=`: axes that are not named must have the reading instance's values.
  std::optional<std::size_t> index;  ///< Index among the instances, from 0.
  RareList<std::pair<std::string, std::string>>
      axes;  ///< The named axes, with their values as written; `*` for any.
};
/// Parses a selector; returns nothing if the text is not one.
std::optional<Selector> parse_selector(std::string_view text);

/// Returns true if `written` denotes the value: `0.10` for 0.1, `rbf` for "rbf", `*` for any.
bool stands_for(std::string_view written, const nlohmann::json& value);

/// A step that may be picked.
struct Candidate {
  std::string_view name;
  std::function<const nlohmann::json*(const std::string& axis)>
      value;  ///< Returns the value on an axis; null for an axis that the step lacks.
};
/// Returns the indices of the candidates that `text` picks, in order: one step by its name, or all
/// instances that a selector such as `train` or `train[c=1]` does not exclude.
std::vector<std::size_t> pick(std::string_view text, std::size_t count,
                              const std::function<Candidate(std::size_t)>& candidate);

/// Returns a hint for a user whose text picks none of the steps: the name that was probably meant,
/// or the names of the steps.
std::string suggest_step(std::string_view text, const std::vector<std::string>& steps);

}  // namespace pipeline::model
