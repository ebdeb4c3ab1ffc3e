#include "engine/run/declarations.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

#include "model/instance.hpp"
#include "model/step_needs.hpp"
#include "orchestrators/nodes.hpp"
#include "settings/accelerator.hpp"
#include "settings/settings.hpp"

namespace pipeline::engine {
namespace {

/// Returns the name of the step, or of the step that it is an instance of.
std::string base_of(const StepSpec& step) { return step.instance ? *step.instance->of : step.name; }

/// Returns the number of processes of a step with nodes. Returns nothing for a step without nodes,
/// and for one with a process for each GPU that takes all GPUs, however many there are.
std::optional<std::size_t> ranks_of(const StepSpec& step) {
  if (!step.nodes) return std::nullopt;
  const auto gpus = settings::gpu_request(step.settings->resources).count;
  if (step.nodes.processes == per_gpu && gpus == 0) return std::nullopt;
  return std::size_t{step.nodes.count} * orchestrators::processes_of(step.nodes, gpus);
}

/// Adds the steps' places in the file, by which the records of a run are ordered if the run makes
/// some of its steps. Steps that run in rounds together have one place, so that the records of a
/// round stay together.
void add_places(const std::vector<const StepSpec*>& steps, nlohmann::json& entries) {
  if (std::ranges::none_of(steps, [](const auto* step) { return step->repeat || step->matrix; }))
    return;
  std::map<std::string, std::size_t> places;
  for (const auto* step : steps) {
    const auto base = base_of(*step);
    const auto place = places.try_emplace(step->repeat ? step->repeat->of : base, places.size());
    entries[base]["place"] = place.first->second;
  }
}

}  // namespace

std::string declarations_of(const std::vector<const StepSpec*>& steps,
                            const std::vector<std::string>& headline) {
  std::map<std::string_view, std::string> bases;
  for (const auto* step : steps) bases.emplace(step->name, base_of(*step));
  std::map<std::string, std::set<std::string>> needs;
  auto entries = nlohmann::json::object();
  const auto add = [&](std::set<std::string>& list, const std::string& name) {
    if (const auto found = bases.find(name); found != bases.end()) list.insert(found->second);
  };
  for (const auto* step : steps) {
    const auto base = base_of(*step);
    auto& list = needs[base];
    model::for_each_need(*step, [&](const std::string& name) { add(list, name); });
    list.erase(base);  // A repeated step may name itself.
    auto& entry = entries[base];
    const auto& resources = step->settings->resources;
    if (resources.memory) entry["memory"] = *resources.memory;
    if (resources.cpu_count) entry["cpu_count"] = *resources.cpu_count;
    if (const auto ranks = ranks_of(*step)) entry["ranks"] = *ranks;
  }
  for (const auto& [base, list] : needs) entries[base]["needs"] = list;
  add_places(steps, entries);
  for (std::size_t i = 0; i < headline.size(); ++i) {
    const auto dot = headline[i].find('.');
    const auto entry = entries.find(headline[i].substr(0, dot));
    if (entry != entries.end()) (*entry)["headline"][headline[i].substr(dot + 1)] = i;
  }
  return entries.dump();
}

}  // namespace pipeline::engine
