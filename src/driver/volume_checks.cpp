#include "driver/volume_checks.hpp"

#include <algorithm>
#include <iterator>

#include "core/text.hpp"
#include "model/step_span.hpp"
#include "orchestrators/catalog/catalog.hpp"

namespace pipeline::driver {
namespace {

/// The steps that read data by one setting.
struct Readers {
  std::string setting;
  std::vector<const StepSpec*> steps;
};

core::Diagnostic warning_of(const Readers& readers) {
  constexpr std::size_t max_named = 5;
  const auto count = readers.steps.size();
  std::string names;
  for (std::size_t i = 0; i < std::min(count, max_named); ++i)
    names += (i ? ", '" : "'") + readers.steps[i]->name + "'";
  if (count > max_named) names += " and " + core::counted(count - max_named, "other");
  return {.code = "volume-not-in-key",
          .message = (count == 1 ? "step " : "steps ") + names +
                     (count == 1 ? " reads `" : " read `") + readers.setting +
                     "`, whose content is not part of the key: a result is reused although the "
                     "data has changed",
          .span = model::span_of(*readers.steps.front()),
          .notes = {},
          .suggestion = "write `cache: false`, or a `version:` that you change with the data",
          .severity = core::Severity::warning};
}

}  // namespace

std::vector<core::Diagnostic> check_volumes(const std::vector<PlacedStep>& steps) {
  std::vector<Readers> found;
  for (const auto& [step, orchestrator] : steps) {
    if (!step->cache || !step->version.empty()) continue;
    const auto* entry = orchestrators::find_entry(orchestrator);
    if (!entry || !entry->setting_outside_key) continue;
    const auto setting = entry->setting_outside_key(*step);
    if (setting.empty()) continue;
    auto readers = std::ranges::find(found, setting, &Readers::setting);
    if (readers == found.end()) readers = found.insert(found.end(), {setting, {}});
    readers->steps.push_back(step);
  }
  std::vector<core::Diagnostic> warnings;
  std::ranges::transform(found, std::back_inserter(warnings), warning_of);
  return warnings;
}

}  // namespace pipeline::driver
