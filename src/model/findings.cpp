#include "model/findings.hpp"
#include "model/step_span.hpp"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "core/text.hpp"

namespace pipeline::model {
namespace {

/// Formats `step 'a'`, or `steps 'a', 'b' and 3 others`.
std::string names_of(const std::vector<const StepSpec*>& steps) {
  constexpr std::size_t max_named = 5;
  std::string text = steps.size() == 1 ? "step " : "steps ";
  for (std::size_t i = 0; i < std::min(steps.size(), max_named); ++i)
    text += (i ? ", '" : "'") + steps[i]->name + "'";
  if (steps.size() > max_named) text += " and " + core::counted(steps.size() - max_named, "other");
  return text;
}

}  // namespace

bool Findings::IsBefore::operator()(const core::Diagnostic& a, const core::Diagnostic& b) const {
  const auto parts = [](const core::Diagnostic& d) {
    return std::tie(d.code, d.message, d.notes, d.suggestion, d.severity);
  };
  return parts(a) < parts(b);
}

void Findings::add(std::span<const StepSpec* const> steps, core::Diagnostic finding) {
  const auto [entry, is_new] = index_.try_emplace(finding, found_.size());
  if (is_new) found_.push_back({std::move(finding), {}, {}});
  auto& found = found_[entry->second];
  for (const auto* step : steps)
    if (found.known.insert(step).second) found.steps.push_back(step);
}

std::vector<core::Diagnostic> Findings::all() const {
  std::vector<core::Diagnostic> all;
  for (const auto& [finding, steps, known] : found_) {
    all.push_back(finding);
    all.back().message = names_of(steps) + ": " + finding.message;
    all.back().span = span_of(*steps.front());
  }
  return all;
}

}  // namespace pipeline::model
