#include "orchestrators/kubernetes/pod_refusal.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "core/quantity.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

bool says(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

/// Returns `limits.cpu=2,pods=1` of the message's part `requested: limits.cpu=2,pods=1, used: ...`.
std::string part_of(const std::string& message, const std::string& label) {
  const auto begin = message.find(label + ": ");
  if (begin == message.npos) return {};
  const auto text = message.substr(begin + label.size() + 2);
  return text.substr(0, text.find_first_of(" \n") == text.npos ? text.npos : text.find(", "));
}

std::map<std::string, double> amounts_in(std::string text) {
  std::map<std::string, double> amounts;
  text += ',';
  while (!text.empty()) {
    const auto end = text.find(','), sign = text.find('=');
    if (sign < end)
      amounts[text.substr(0, sign)] =
          core::parse_quantity(text.substr(sign + 1, end - sign - 1)).value_or(0);
    text.erase(0, end + 1);
  }
  return amounts;
}

Refusal by_quota(const std::string& message) {
  const auto requested = part_of(message, "requested"), limited = part_of(message, "limited");
  const auto limits = amounts_in(limited);
  const auto text = "the quota '" + part_of(message, "exceeded quota") + "' allows " + limited +
                    ", and this asks for " + requested;
  const bool fits = std::ranges::all_of(amounts_in(requested), [&](const auto& each) {
    const auto limit = limits.find(each.first);
    return limit == limits.end() || each.second <= limit->second;
  });
  if (fits) return {Refusal::Kind::full, text, {}};
  return {Refusal::Kind::permanent,
          text,
          {"ask for less under `resources`, or have the namespace's quota raised"}};
}

struct RefusalAdvice {
  std::string_view part;  ///< A part of the message, without a first letter of either case.
  const char* hint;
};
constexpr std::array refusal_advice{
    RefusalAdvice{"being terminated", "name another namespace with --namespace"},
    RefusalAdvice{
        "must specify",
        "give the step what is named: `resources: {cpu_count: 1, memory: 2GiB}` are requests "
        "and limits, `kubernetes.resources` has all kinds of them"},
    RefusalAdvice{"per Container",
                  "`resources` and `kubernetes.resources` are what the step asks for"},
    RefusalAdvice{
        "hostPath",
        "a pod sees files of its node here: a `claim` or an `artifact_store` of a profile gives "
        "it its files without that"},
    RefusalAdvice{"unAsNonRoot", "`docker.user: 1000` has the step run as a user who is not root"},
    RefusalAdvice{
        "PodSecurity",
        "`kubernetes.container_security_context` and `pod_security_context` set what a policy "
        "asks for"},
};

/// Words in refusals of the kind `Forbidden` that are only temporary.
constexpr std::array<std::string_view, 4> temporary_words{
    "status unknown for quota", "not yet ready", "serviceaccount \"", "failed calling webhook"};

}  // namespace

Refusal refusal_of(const std::string& message) {
  if (says(message, "exceeded quota: ")) return by_quota(message);
  Refusal refusal{Refusal::Kind::temporary, message, {}};
  const bool is_final = says(message, "denied the request") || says(message, " is forbidden") ||
                        says(message, " is invalid");
  if (!is_final ||
      std::ranges::any_of(temporary_words, [&](auto part) { return says(message, part); }))
    return refusal;
  refusal.kind = Refusal::Kind::permanent;
  for (const auto& each : refusal_advice)
    if (says(message, each.part)) refusal.hints.emplace_back(each.hint);
  return refusal;
}

Failure refused(const Refusal& refusal) {
  return {FailureKind::not_started, "could not start: " + refusal.reason, refusal.hints, {}};
}

}  // namespace pipeline::orchestrators::kubernetes
