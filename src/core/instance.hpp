/// @file
/// Steps that are made of one, as by a `matrix`: their names, and how a user picks some of them:
/// `train[c=0.1,kernel=*]`.
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

namespace pipeline::core {

/// One value for each axis, in the axes' order.
using AxisValues = std::vector<std::pair<std::string, nlohmann::json>>;

/// A value as the user writes it: texts without quotes, the rest as JSON.
std::string axis_text(const nlohmann::json& value);

/// The longest name of a step that instances can be made of: theirs are longer.
constexpr std::size_t longest_base = 96;

/// Makes the names of a step's instances: `train.c-0.1.kernel-rbf`. Each is a name (is_name()) and
/// differs from those before; where a value is too long or has characters that no name may have, or
/// two come out equal, a digest of the values ends it.
class InstanceNames {
 public:
  explicit InstanceNames(std::string base) : base_(std::move(base)) {}
  /// Without values it is called by its number, from 0: `train.0`.
  std::string next(const AxisValues& values);

 private:
  std::string base_;
  std::unordered_set<std::string> taken_;
};

/// `train` of `train.c-0.1`: the name of the step that it was made of, itself for one that was made
/// of none.
std::string_view base_name(std::string_view step);

/// Which steps a user means: `STEP`, `STEP[*]`, `STEP[2]` (from 0), `STEP[=]`, or
/// `STEP[AXIS=VALUE,AXIS=*,=]`.
struct Selector {
  std::string step;
  bool has_brackets = false;
  bool all = false;   ///< `*`
  bool same = false;  ///< `=`: on the axes that are not named, the values of the one who reads.
  std::optional<std::size_t> index;  ///< Place among its siblings, from 0.
  std::vector<std::pair<std::string, std::string>>
      axes;  ///< With their values as written; `*` for any.
};
/// Nothing if it is none of these.
std::optional<Selector> parse_selector(std::string_view text);

/// True if `written` stands for the value: `0.10` for 0.1, `rbf` for "rbf", `*` for any.
bool stands_for(std::string_view written, const nlohmann::json& value);

/// A step that may be picked.
struct Candidate {
  std::string_view name;
  std::function<const nlohmann::json*(const std::string& axis)>
      value;  ///< Nothing for an axis that it lacks.
};
/// The candidates that `text` picks: one by its name, or all instances of a step that are not ruled
/// out: `train`, `train[c=1]`. In their order.
std::vector<std::size_t> pick(std::string_view text, std::size_t count,
                              const std::function<Candidate(std::size_t)>& candidate);

}  // namespace pipeline::core
