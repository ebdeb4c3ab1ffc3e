#include "driver/volume_checks.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace pipeline::driver {
namespace {

bool is_claim(const nlohmann::json& volume) {
  if (volume.is_string()) return volume.get<std::string>().starts_with("pvc/");
  return volume.is_object() && volume.contains("persistentVolumeClaim");
}

/// Returns the setting by which the step reads data that its key does not cover; empty: none.
std::string setting_of(const StepSpec& step, const std::string& orchestrator) {
  if (orchestrator == "docker" && !step.settings->docker.volumes.items().empty())
    return "docker.volumes";
  const auto& volumes = *step.settings->kubernetes.volumes;
  if (orchestrator == "kubernetes" && volumes.is_array() && std::ranges::any_of(volumes, is_claim))
    return "kubernetes.volumes";
  return {};
}

}  // namespace

std::vector<core::Diagnostic> check_volumes(const std::vector<PlacedStep>& steps) {
  std::string names, setting;
  std::size_t count = 0;
  core::Diagnostic warning;
  for (const auto& [step, orchestrator] : steps) {
    if (!step->cache || !step->version.empty()) continue;
    const auto own = setting_of(*step, orchestrator);
    if (own.empty()) continue;
    names += (names.empty() ? "'" : ", '") + step->name + "'";
    if (++count > 1) continue;
    setting = own;
    warning.span.line = step->line;
  }
  if (count == 0) return {};
  warning.severity = core::Severity::warning;
  warning.code = "volume-not-in-key";
  warning.message =
      std::string(count == 1 ? "step " : "steps ") + names + (count == 1 ? " reads" : " read") +
      " `" + setting +
      "`, whose content is no part of the key: a result is reused although the data has changed";
  warning.suggestion = "write `cache: false`, or a `version:` that you change with the data";
  return {std::move(warning)};
}

}  // namespace pipeline::driver
