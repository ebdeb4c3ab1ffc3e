/// @file
/// Amazon ECS's cluster query language: an expression over a host's attributes that decides where a
/// step may run. An expression is parsed to values, and then evaluated against this host's
/// attributes or converted to the terms of a Kubernetes node affinity (placement_terms.hpp).
///
/// Where ECS's guide is silent, these rules apply: `and` binds tighter than `or`, `not` tighter
/// than both; `<`, `<=`, `>` and `>=` compare two numbers as numbers, and other values as texts; on
/// a host without the attribute, `!=`, `not_in`, `!~` and `!exists` hold and no other comparison
/// does (as in Kubernetes); a pattern has to match the whole value.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gpu/pattern.hpp"

namespace pipeline::gpu {

/// An expression: a comparison, or a combination of expressions.
struct Placement {
  enum class Kind { comparison, all_of, any_of, negation };
  enum class Operator {
    equal,
    not_equal,
    greater,
    greater_equal,
    less,
    less_equal,
    exists,
    not_exists,
    in,
    not_in,
    matches,
    not_matches
  };

  Kind kind = Kind::comparison;
  std::vector<Placement> operands;  ///< For all_of and any_of two or more, for negation one.

  // Members of a comparison.
  std::string attribute;  ///< Without the prefix `attribute:`.
  Operator op = Operator::equal;
  std::vector<std::string> values;  ///< None for (not_)exists, any number for (not_)in, else one.
  std::shared_ptr<const Pattern> pattern;  ///< For (not_)matches. Shared, because expressions are
                                           ///< copied often and the pattern never changes.

  std::string text;  ///< The expression as the user wrote it.
};

/// An error in an expression, at an offset in its text.
struct PlacementError : TextError {
  std::string suggestion;
};

std::variant<Placement, PlacementError> parse_placement(std::string_view text);

using HostAttributes = std::map<std::string, std::string>;

/// Returns why the host does not satisfy the expression: each part that decided it, with the value
/// of the host's attribute. Empty if the host satisfies it.
std::vector<std::string> unsatisfied(const Placement& placement, const HostAttributes& host);

/// Returns the values of which the attribute must have one to satisfy the expression; empty if
/// other values are possible, too.
/// @param known the values that a pattern stands for, where it matches them; without any, a pattern
/// demands no value
std::vector<std::string> demanded_values(const Placement& placement, std::string_view attribute,
                                         std::span<const std::string_view> known = {});

}  // namespace pipeline::gpu
