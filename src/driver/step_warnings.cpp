#include "driver/step_warnings.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include "core/error.hpp"
#include "docker/engines.hpp"
#include "driver/command_checks.hpp"
#include "driver/error_report.hpp"
#include "driver/run_observer.hpp"
#include "driver/session.hpp"
#include "driver/user_checks.hpp"
#include "driver/volume_checks.hpp"
#include "driver/workspace.hpp"
#include "engine/run/refusal.hpp"
#include "gpu/choose.hpp"
#include "gpu/concurrent_containers.hpp"
#include "gpu/step_checks.hpp"
#include "model/step_span.hpp"
#include "settings/accelerator.hpp"
#include "spec/host_file.hpp"

namespace pipeline::driver {
namespace {

/// Returns the variables and labels of an image from the engine's response about it.
gpu::ImageConfig config_of(const nlohmann::json& image) {
  gpu::ImageConfig config;
  const auto found = image.find("Config");
  if (found == image.end() || !found->is_object()) return config;
  if (const auto variables = found->find("Env"); variables != found->end() && variables->is_array())
    for (const auto& variable : *variables)
      if (variable.is_string()) {
        const auto& text = variable.get_ref<const std::string&>();
        const auto equals = std::min(text.find('='), text.size());
        config.environment.insert_or_assign(text.substr(0, equals),
                                            text.substr(std::min(equals + 1, text.size())));
      }
  if (const auto labels = found->find("Labels"); labels != found->end() && labels->is_object())
    for (const auto& [name, value] : labels->items())
      if (value.is_string()) config.labels.insert_or_assign(name, value.get<std::string>());
  return config;
}

}  // namespace

std::vector<core::Diagnostic> report_warnings(const PipelineSpec& pipeline,
                                              std::vector<core::Diagnostic> diagnostics,
                                              const Say& say) {
  if (diagnostics.empty()) return diagnostics;
  std::vector<core::SourceText> sources(1);
  try {
    sources = engine::sources_of(pipeline);
  } catch (const core::EnvironmentError&) {  // The findings are shown without their lines.
    sources.front().file = pipeline.file.string();
  }
  engine::mark_keys(diagnostics, sources);
  const auto is_error = [](const core::Diagnostic& each) {
    return each.severity == core::Severity::error;
  };
  if (std::any_of(diagnostics.begin(), diagnostics.end(), is_error))
    throw core::InputError(std::move(diagnostics), std::move(sources));
  for (const core::Diagnostic& diagnostic : diagnostics) {
    const auto& source = sources[diagnostic.span.file < sources.size() ? diagnostic.span.file : 0];
    say(core::render(diagnostic, shown_path(source.file), source.text));
  }
  return diagnostics;
}

namespace {

/// Checks the GPUs and placement of steps that run on one orchestrator.
std::vector<core::Diagnostic> check_gpus_on(const orchestrators::Capabilities& orchestrator,
                                            Session& session,
                                            const std::vector<const StepSpec*>& steps) {
  Workspace& workspace = session.workspace;
  gpu::StepCheckContext checks;
  checks.host_file = spec::host_file().string();
  checks.in_images = orchestrator.traits.uses_images;
  // On Slurm, steps run on other nodes, whose attributes are not known.
  if (orchestrator.on_this_machine && !orchestrator.traits.evaluates_constraints)
    checks.attributes = spec::host_attributes();
  std::optional<gpu::Inventory> inventory;
  if (orchestrator.gpus_of_this_machine &&
      std::any_of(steps.begin(), steps.end(), [](const StepSpec* step) {
        return settings::gpu_request(step->settings->resources).wanted();
      }))
    inventory = session.machine().read();
  if (inventory && !inventory->unavailable)
    checks.gpus = [&](const settings::GpuRequest& request) {
      return gpu::host_for(request, *inventory);
    };
  std::optional<docker::EngineApi> engine;
  std::map<std::string, std::optional<gpu::ImageConfig>> configs;
  if (orchestrator.traits.runs_on_engine)
    checks.image_config = [&](const std::string& reference) -> std::optional<gpu::ImageConfig> {
      const auto [known, is_new] = configs.try_emplace(reference);
      if (!is_new) return known->second;
      try {
        if (!engine)
          engine.emplace(workspace.loop(),
                         docker::find_engines(workspace.options().connection).front().endpoint);
        if (const auto image = workspace.await(engine->inspect_image(reference)))
          known->second = config_of(*image);
      } catch (const core::EnvironmentError&) {  // Reported by the code that needs the engine.
      }
      return known->second;
    };
  return gpu::check_steps(steps, checks);
}

}  // namespace

std::vector<core::Diagnostic> check_steps(Session& session, const Say& say) {
  std::map<std::string, std::vector<const StepSpec*>> by_orchestrator;
  for (const auto* step : session.source.selected_steps()) {
    const ResourceSettings& resources = step->settings->resources;
    if (resources.instance_type || !resources.placement_constraints.items().empty() ||
        settings::gpu_request(resources).wanted())
      by_orchestrator[session.routes().capabilities_of(*step).name].push_back(step);
  }
  std::vector<PlacedStep> placed;
  std::vector<const StepSpec*> in_containers;  // On this machine.
  for (const auto* step : session.source.selected_steps()) {
    const auto& orchestrator = session.routes().capabilities_of(*step);
    placed.emplace_back(step, orchestrator.name);
    if (orchestrator.on_this_machine && orchestrator.traits.runs_on_engine)
      in_containers.push_back(step);
  }
  auto found = check_volumes(placed);
  std::ranges::move(check_users(in_containers), std::back_inserter(found));
  std::ranges::move(check_scripts(session.source.selected_steps(), session.source.resolver()),
                    std::back_inserter(found));
  std::ranges::move(check_files(session.source.selected_steps(), session.source.resolver()),
                    std::back_inserter(found));
  std::ranges::move(check_sizes(session.source.selected_steps()), std::back_inserter(found));
  std::ranges::move(check_builds(session.source.selected_steps()), std::back_inserter(found));
  for (const auto& [name, steps] : by_orchestrator)
    for (auto& diagnostic :
         check_gpus_on(session.routes().capabilities_of(*steps.front()), session, steps))
      found.push_back(std::move(diagnostic));
  return report_warnings(session.pipeline(), std::move(found), say);
}

std::vector<core::Diagnostic> check_missing_gpus(Session& session,
                                                 const std::vector<const StepSpec*>& steps,
                                                 const Say& say) {
  std::vector<core::Diagnostic> found;
  const auto warn = [&](const StepSpec& step, const gpu::Shortage& lack, std::string message) {
    found.push_back({lack.code, std::move(message), model::span_of(step), lack.notes,
                     lack.suggestion, core::Severity::warning});
  };
  std::optional<gpu::Inventory> inventory;  // Read once: it takes milliseconds for each GPU.
  std::vector<gpu::TaskContainer>
      task;  // Steps without GPUs as well, because others wait for them.
  for (const auto* step : steps) {
    task.push_back({step->name, 0, {step->after.begin(), step->after.end()}});
    const auto& orchestrator = session.routes().capabilities_of(*step);
    const bool has_gpus_here =
        orchestrator.gpus && orchestrator.on_this_machine && orchestrator.gpus_of_this_machine;
    const auto request = gpu::request_of(*step);
    if (!request.wanted() || !has_gpus_here) continue;
    if (!inventory) inventory = session.machine().read();
    if (inventory->unavailable)
      return {};  // Docker may see GPUs, but asking it starts a container.
    const auto result = gpu::demand_of(request, *inventory);
    if (const auto* shortage = std::get_if<gpu::Shortage>(&result))
      warn(*step, *shortage, "step '" + step->name + "' " + shortage->message);
    else
      task.back().gpus = std::get<gpu::Demand>(result).count;
  }
  if (session.pipeline().reserve_gpus_together && inventory)
    if (const auto lack = gpu::shortage_of(task, gpu::units_of(*inventory), inventory->owner))
      warn(*steps[lack->container], lack->shortage, lack->shortage.message);
  return report_warnings(session.pipeline(), std::move(found), say);
}

nlohmann::json warnings_json(const std::vector<core::Diagnostic>& warnings,
                             const PipelineSpec& pipeline) {
  nlohmann::json list = nlohmann::json::array();
  for (const core::Diagnostic& each : warnings) {
    auto entry = diagnostic_json(each);
    const auto number = each.span.file;
    const bool is_included = number > 0 && number <= pipeline.included.size();
    const auto& file = is_included ? pipeline.included[number - 1] : pipeline.file;
    if (!file.empty()) entry["file"] = file.string();
    list.push_back(std::move(entry));
  }
  return list;
}

void report_step_warnings(Session& session, RunObserver& observer) {
  std::vector<std::string> texts;
  const auto warnings =
      check_steps(session, [&](std::string_view text) { texts.emplace_back(text); });
  const auto list = warnings_json(warnings, session.pipeline());
  for (std::size_t i = 0; i < texts.size(); ++i) observer.warn(texts[i], list[i]);
}

}  // namespace pipeline::driver
