#include "gpu/placement_terms.hpp"

#include <charconv>
#include <map>
#include <stdexcept>

namespace pipeline::gpu {
namespace {

using Terms = std::vector<NodeTerm>;

constexpr std::size_t max_terms = 64;  ///< More would make the Job's document very large.

struct NotExpressible : std::runtime_error {
  using runtime_error::runtime_error;
};

/// Returns the node label that has the attribute's value.
std::string label_of(const std::string& attribute) {
  // kubernetes.io/docs/reference/labels-annotations-taints
  static const std::map<std::string, std::string> labels{
      {"ecs.instance-type", "node.kubernetes.io/instance-type"},
      {"ecs.availability-zone", "topology.kubernetes.io/zone"},
      {"ecs.os-type", "kubernetes.io/os"},
      {"ecs.cpu-architecture", "kubernetes.io/arch"}};
  const auto found = labels.find(attribute);
  return found == labels.end() ? attribute : found->second;
}

/// Returns the values as Kubernetes writes them.
std::vector<std::string> values_of(const Placement& comparison) {
  auto values = comparison.values;
  if (comparison.attribute == "ecs.cpu-architecture")
    for (auto& value : values) value = value == "x86_64" ? "amd64" : value;
  return values;
}

Placement::Operator opposite(Placement::Operator op) {
  switch (op) {
    case Placement::Operator::equal: return Placement::Operator::not_equal;
    case Placement::Operator::not_equal: return Placement::Operator::equal;
    case Placement::Operator::greater: return Placement::Operator::less_equal;
    case Placement::Operator::greater_equal: return Placement::Operator::less;
    case Placement::Operator::less: return Placement::Operator::greater_equal;
    case Placement::Operator::less_equal: return Placement::Operator::greater;
    case Placement::Operator::exists: return Placement::Operator::not_exists;
    case Placement::Operator::not_exists: return Placement::Operator::exists;
    case Placement::Operator::in: return Placement::Operator::not_in;
    case Placement::Operator::not_in: return Placement::Operator::in;
    case Placement::Operator::matches: return Placement::Operator::not_matches;
    case Placement::Operator::not_matches: return Placement::Operator::matches;
  }
  return op;
}

/// Returns the requirement for an order. Kubernetes' Gt and Lt accept whole numbers only, and
/// exclude the bound itself.
NodeRequirement ordered(const std::string& key, Placement::Operator op,
                        const Placement& comparison) {
  const std::string& text = comparison.values.front();
  long long number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  constexpr long long max_bound = 1'000'000'000'000'000;
  if (error != std::errc() || end != text.data() + text.size() || number > max_bound ||
      number < -max_bound)
    throw NotExpressible("`" + comparison.text + "`: a node affinity compares whole numbers only");
  const bool is_greater =
      op == Placement::Operator::greater || op == Placement::Operator::greater_equal;
  if (op == Placement::Operator::greater_equal) --number;
  if (op == Placement::Operator::less_equal) ++number;
  return {key, is_greater ? "Gt" : "Lt", {std::to_string(number)}};
}

Terms terms_of_comparison(const Placement& comparison, bool negated) {
  const Placement::Operator op = negated ? opposite(comparison.op) : comparison.op;
  const std::string key = label_of(comparison.attribute);
  switch (op) {
    case Placement::Operator::equal:
    case Placement::Operator::in: return {{{key, "In", values_of(comparison)}}};
    case Placement::Operator::not_equal:
    case Placement::Operator::not_in: return {{{key, "NotIn", values_of(comparison)}}};
    case Placement::Operator::exists: return {{{key, "Exists", {}}}};
    case Placement::Operator::not_exists: return {{{key, "DoesNotExist", {}}}};
    case Placement::Operator::matches:
    case Placement::Operator::not_matches:
      throw NotExpressible("`" + comparison.text +
                           "`: a node affinity has no patterns; list the values with `in [...]`");
    default: break;
  }
  Terms terms{{ordered(key, op, comparison)}};
  if (negated)
    terms.push_back({{key, "DoesNotExist", {}}});  // not (x > 5) holds for a node without x.
  return terms;
}

/// Returns the terms of the expression or, if `negated`, of its negation.
Terms terms_of(const Placement& placement, bool negated) {
  if (placement.kind == Placement::Kind::comparison) return terms_of_comparison(placement, negated);
  if (placement.kind == Placement::Kind::negation)
    return terms_of(placement.operands.front(), !negated);
  // A negated `and` is an `or` of the negated operands, and the reverse.
  const bool is_any = (placement.kind == Placement::Kind::any_of) != negated;
  Terms terms = is_any ? Terms{} : Terms{{}};
  for (const Placement& operand : placement.operands) {
    const Terms more = terms_of(operand, negated);
    Terms joined;
    if (is_any) {
      joined = terms;
      joined.insert(joined.end(), more.begin(), more.end());
    } else {
      if (terms.size() * more.size() > max_terms)
        throw NotExpressible("the expression has more than 64 combinations");
      for (const NodeTerm& left : terms)
        for (const NodeTerm& right : more) {
          joined.push_back(left);
          joined.back().insert(joined.back().end(), right.begin(), right.end());
        }
    }
    terms = std::move(joined);
    if (terms.size() > max_terms)
      throw NotExpressible("the expression has more than 64 combinations");
  }
  return terms;
}

}  // namespace

std::variant<Terms, std::string> node_selector_terms(const Placement& placement) {
  try {
    return terms_of(placement, false);
  } catch (const NotExpressible& error) {
    return std::string(error.what());
  }
}

}  // namespace pipeline::gpu
