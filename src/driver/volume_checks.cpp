#include "driver/volume_checks.hpp"

#include "model/step_span.hpp"
#include "orchestrators/catalog/catalog.hpp"

namespace pipeline::driver {

std::vector<core::Diagnostic> check_volumes(const std::vector<PlacedStep>& steps) {
  constexpr std::size_t max_named = 5;
  std::string names, setting;
  std::size_t count = 0;
  core::Diagnostic warning;
  for (const auto& [step, orchestrator] : steps) {
    if (!step->cache || !step->version.empty()) continue;
    const auto* entry = orchestrators::find_entry(orchestrator);
    if (!entry || !entry->setting_outside_key) continue;
    const auto own = entry->setting_outside_key(*step);
    if (own.empty()) continue;
    if (++count <= max_named) names += (names.empty() ? "'" : ", '") + step->name + "'";
    if (count > 1) continue;
    setting = own;
    warning.span = model::span_of(*step);
  }
  if (count == 0) return {};
  if (count > max_named) names += " and " + std::to_string(count - max_named) + " others";
  warning.severity = core::Severity::warning;
  warning.code = "volume-not-in-key";
  warning.message =
      std::string(count == 1 ? "step " : "steps ") + names + (count == 1 ? " reads" : " read") +
      " `" + setting +
      "`, whose content is not part of the key: a result is reused although the data has changed";
  warning.suggestion = "write `cache: false`, or a `version:` that you change with the data";
  return {std::move(warning)};
}

}  // namespace pipeline::driver
