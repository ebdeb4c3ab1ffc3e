#include "model/failure_groups.hpp"

#include <algorithm>
#include <unordered_map>

#include "core/text.hpp"
#include "model/instance.hpp"

namespace pipeline::model {
namespace {

/// Returns the text with `#` for each number, and without the step's name, which is part of paths.
std::string without_numbers(std::string text, const std::string& step) {
  text = core::replaced(std::move(text), step, "");
  std::string general;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_point = text[i] == '.' && general.ends_with('#') && i + 1 < text.size() &&
                          core::is_digit(text[i + 1]);
    if (!core::is_digit(text[i]) && !is_point)
      general += text[i];
    else if (!general.ends_with('#'))
      general += '#';
  }
  return general;
}

/// Returns a text that is the same for failures of one group; empty for a failure that is not
/// grouped.
std::string reason_of(const StepFailure& failed) {
  const auto& [kind, message, hints, details] = failed.failure;
  if (is_of_environment(kind)) {
    auto text = "\n" + message;
    for (const auto& line : details) text += "\n" + line;
    return text;
  }
  const std::string base(base_name(failed.step));
  if (base == failed.step) return "";
  const bool has_code = kind == FailureKind::exit_code || kind == FailureKind::signal;
  // core/shell_prelude.hpp prints `pipe: line N ended with ...`, which says nothing of the reason.
  const auto last = std::find_if(details.rbegin(), details.rend(), [](const auto& line) {
    return !core::trimmed(line).empty() && !line.starts_with("pipe: line ");
  });
  return base + "\n" + (has_code ? message : without_numbers(message, failed.step)) + "\n" +
         (last == details.rend() ? "" : without_numbers(*last, failed.step));
}

}  // namespace

bool is_of_environment(FailureKind kind) {
  return kind == FailureKind::build || kind == FailureKind::environment;
}

std::vector<FailureGroup> group_failures(std::vector<StepFailure> failures) {
  std::vector<FailureGroup> groups;
  std::unordered_map<std::string, std::size_t> known;
  for (auto& failed : failures) {
    const auto reason = reason_of(failed);
    if (!reason.empty()) {
      const auto [place, is_new] = known.emplace(reason, groups.size());
      if (!is_new) {
        groups[place->second].steps.push_back(std::move(failed.step));
        continue;
      }
    }
    std::string base(base_name(failed.step));
    if (base == failed.step || is_of_environment(failed.failure.kind)) base.clear();
    groups.push_back({{std::move(failed.step)}, std::move(failed.failure), std::move(base)});
  }
  return groups;
}

std::string names_of(const FailureGroup& group) {
  constexpr std::size_t max_names = 3;
  std::string names;
  for (std::size_t i = 0; i < std::min(group.steps.size(), max_names); ++i)
    names += (i ? ", " : "") + group.steps[i];
  if (group.steps.size() > max_names)
    names += " and " + core::counted(group.steps.size() - max_names, "more step");
  if (!group.matrix.empty() && group.steps.size() > 1)
    names += " (" + std::to_string(group.steps.size()) + " instances)";
  return names;
}

}  // namespace pipeline::model
