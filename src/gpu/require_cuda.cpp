#include "gpu/require_cuda.hpp"

#include <algorithm>
#include <array>

namespace pipeline::gpu {
namespace {

/// Returns true if the order satisfies the operator.
bool compare(std::string_view op, std::strong_ordering order) {
  if (op == "=" || op == "==") return order == 0;
  if (op == "!=") return order != 0;
  if (op == ">=") return order >= 0;
  if (op == "<=") return order <= 0;
  if (op == ">") return order > 0;
  return order < 0;
}

struct Condition {
  std::string_view property, op, value;
};

std::optional<Condition> parse_condition(std::string_view text) {
  const auto at = text.find_first_of("<>=!");
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  for (const std::string_view op : {">=", "<=", "!=", "==", "=", ">", "<"}) {
    if (!text.substr(at).starts_with(op)) continue;
    const Condition condition{text.substr(0, at), op, text.substr(at + op.size())};
    if (condition.value.empty() || condition.value.find_first_of("<>=!") != std::string_view::npos)
      return std::nullopt;
    return condition;
  }
  return std::nullopt;
}

std::optional<Version> version_of(const settings::ComputeCapability& capability) {
  return Version{{capability.major, capability.minor}, {}};
}

/// Returns whether the condition holds.
RequireVerdict::Kind evaluate(std::string_view text, const DriverFacts& facts) {
  const auto condition = parse_condition(text);
  if (!condition) return RequireVerdict::Kind::malformed;
  if (condition->property == "brand") {
    if (condition->op != "=" && condition->op != "==" && condition->op != "!=")
      return RequireVerdict::Kind::malformed;
    if (facts.brand.empty()) return RequireVerdict::Kind::unknown;
    return (facts.brand == condition->value) == (condition->op != "!=")
               ? RequireVerdict::Kind::satisfied
               : RequireVerdict::Kind::unsatisfied;
  }
  std::optional<Version> known;
  if (condition->property == "cuda")
    known = facts.cuda;
  else if (condition->property == "driver")
    known = facts.driver;
  else if (condition->property == "arch")
    known = facts.capability ? version_of(*facts.capability) : std::nullopt;
  else
    return RequireVerdict::Kind::unknown;
  const auto wanted = Version::parse(condition->value);
  if (!wanted) return RequireVerdict::Kind::malformed;
  if (!known) return RequireVerdict::Kind::unknown;
  // `driver=470` compares only the parts that are written: 470.57.02 counts as 470.
  const Version comparable = known->first(std::max<std::size_t>(wanted->parts.size(), 1));
  return compare(condition->op,
                 (condition->op == "=" || condition->op == "==" || condition->op == "!=")
                     ? comparable <=> *wanted
                     : *known <=> *wanted)
             ? RequireVerdict::Kind::satisfied
             : RequireVerdict::Kind::unsatisfied;
}

}  // namespace

RequireVerdict check_require_cuda(std::string_view text, const DriverFacts& facts) {
  RequireVerdict verdict{RequireVerdict::Kind::unsatisfied, ""};
  bool has_group = false, has_unknown = false;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find(' ', at), text.size());
    std::string_view group = text.substr(at, end - at);
    at = end + 1;
    if (group.empty()) continue;
    has_group = true;
    RequireVerdict::Kind all = RequireVerdict::Kind::satisfied;
    while (!group.empty()) {
      const auto comma = std::min(group.find(','), group.size());
      const auto part = group.substr(0, comma);
      group.remove_prefix(std::min(comma + 1, group.size()));
      const RequireVerdict::Kind kind = evaluate(part, facts);
      if (kind == RequireVerdict::Kind::malformed)
        return {RequireVerdict::Kind::malformed, std::string(part.substr(0, 80))};
      if (kind == RequireVerdict::Kind::unsatisfied && verdict.condition.empty())
        verdict.condition = std::string(part.substr(0, 80));
      if (kind == RequireVerdict::Kind::unsatisfied ||
          (kind == RequireVerdict::Kind::unknown && all == RequireVerdict::Kind::satisfied))
        all = kind;
    }
    if (all == RequireVerdict::Kind::satisfied) return {RequireVerdict::Kind::satisfied, ""};
    if (all == RequireVerdict::Kind::unknown) has_unknown = true;
  }
  if (!has_group) return {RequireVerdict::Kind::satisfied, ""};
  if (has_unknown) return {RequireVerdict::Kind::unknown, ""};
  return verdict;
}

}  // namespace pipeline::gpu
