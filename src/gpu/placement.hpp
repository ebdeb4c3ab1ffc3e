/// @file
/// Amazon ECS's cluster query language: where a step may run, as an expression over attributes of
/// the host. Parsed to values, evaluated against this host's attributes, or turned into the terms
/// of a Kubernetes node affinity (placement_terms.hpp).
///
/// What ECS's guide leaves open is settled so: `and` binds closer than `or`, `not` closer than
/// both; two numbers are compared as numbers, anything else as text; on a host that lacks the
/// attribute, `!=`, `not_in`, `!~` and `!exists` hold and no other comparison does (as Kubernetes
/// has it); a pattern has to match the whole value.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gpu/pattern.hpp"

namespace pipeline::gpu {

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
  std::vector<Placement> operands;  ///< Of all_of, any_of (two or more) and negation (one).

  // Of a comparison.
  std::string attribute;  ///< Without `attribute:`.
  Operator op = Operator::equal;
  std::vector<std::string> values;  ///< None for (not_)exists, any number for (not_)in, else one.
  std::shared_ptr<const Pattern> pattern;  ///< Of (not_)matches. Shared: copies of an expression
                                           ///< are many, the pattern never changes.

  std::string text;  ///< As the user wrote it.
};

struct PlacementError : TextError {
  std::string suggestion;
};

std::variant<Placement, PlacementError> parse_placement(std::string_view text);

using HostAttributes = std::map<std::string, std::string>;

/// Why the host does not satisfy the expression: for each part that decided, what it says and what
/// the attribute is here. None if the host does.
std::vector<std::string> unsatisfied(const Placement& placement, const HostAttributes& host);

/// The values of which a host's attribute must have one to satisfy the expression; none: it may
/// have others, too.
std::vector<std::string> demanded_values(const Placement& placement, std::string_view attribute);

}  // namespace pipeline::gpu
