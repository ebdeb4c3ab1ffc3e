#include "cli/gpu_checks.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "cli/context.hpp"
#include "cli/progress.hpp"
#include "cli/session.hpp"
#include "core/file.hpp"
#include "docker/engine_api.hpp"
#include "docker/image_plan.hpp"
#include "gpu/instance_types.hpp"
#include "gpu/model.hpp"
#include "orchestrators/findings.hpp"
#include "settings/accelerator.hpp"
#include "settings/settings.hpp"
#include "spec/host_file.hpp"

namespace pipeline::cli {
namespace {

using gpu::Finding;

bool brings_unknown(const DockerSettings& docker) {
  if (docker.dockerfile || docker.pyproject_path || docker.local_project_install_command ||
      docker.replicate_local_python_environment.value_or(false))
    return true;
  const auto& packages = docker.apt_packages.items();
  return std::any_of(packages.begin(), packages.end(), [](const std::string& name) {
    return name.find("cuda") != std::string::npos || name.find("cudnn") != std::string::npos;
  });
}

gpu::CudaFacts facts_of(const StepSpec& step, const GpuCheckContext& gpu_check_context) {
  const DockerSettings& settings = step.settings.docker;
  gpu::CudaFacts facts;
  // Without a platform of its own an image is this machine's.
  const std::string platform = settings.platform.value_or("");
#ifdef __aarch64__
  const bool is_x86 = platform.find("amd64") != std::string::npos;
#else
  const bool is_x86 = platform.find("arm") == std::string::npos;
#endif
  if (!settings.skip_build.value_or(false)) {
    facts.wheels = gpu::wheels_of(settings.requirements.items(),
                                  settings.python_package_installer_args, is_x86);
    facts.may_bring_cuda = brings_unknown(settings);
  }
  if (!gpu_check_context.in_images || settings.dockerfile) return facts;
  facts.image = settings.parent_image.value_or(std::string(docker::default_parent_image));
  facts.cuda = gpu::image_cuda(facts.image, gpu_check_context.image_config
                                                ? gpu_check_context.image_config(facts.image)
                                                : std::nullopt);
  StringMap variables = settings.environment;
  for (const auto& [name, value] : settings.runtime_environment)
    variables.insert_or_assign(name, value);
  for (const auto& [name, value] : step.environment)
    if (value) variables.insert_or_assign(name, *value);
  if (gpu::disables_require(variables)) facts.cuda->disable_require = true;
  return facts;
}

/// The machine that the step will run on: this one, or the instance type that it names.
gpu::GpuHost host_of(const StepSpec& step, const settings::GpuRequest& request,
                     const GpuCheckContext& gpu_check_context) {
  if (gpu_check_context.gpus) return gpu_check_context.gpus(request);
  gpu::GpuHost host;
  const auto& name = step.settings.resources.instance_type;
  if (const gpu::InstanceType* type = name ? gpu::find_instance_type(*name) : nullptr;
      type && type->is_nvidia())
    host.capabilities = {type->capability};
  return host;
}

std::vector<Finding> unplaced(const StepSpec& step, const gpu::HostAttributes& host) {
  std::vector<Finding> findings;
  const auto refuse = [&](const std::string& text, const std::string& reason) {
    findings.push_back({core::Severity::error, "placement",
                        "the constraint `" + text + "` is not satisfied here: " + reason,
                        "attributes of this machine are set in " + spec::host_file().string()});
  };
  for (const std::string& text : step.settings.resources.placement_constraints.items()) {
    const auto parsed = gpu::parse_placement(text);
    if (const auto* error = std::get_if<gpu::PlacementError>(&parsed)) {
      refuse(text, error->message);  // of a program; a file's have been checked
      continue;
    }
    std::string reasons;
    for (const auto& reason : gpu::unsatisfied(std::get<gpu::Placement>(parsed), host))
      reasons += (reasons.empty() ? "" : "; ") + reason;
    // Of one comparison alone the text need not be repeated.
    if (const std::string whole = "`" + text + "`: "; reasons.starts_with(whole))
      reasons.erase(0, whole.size());
    if (!reasons.empty()) refuse(text, reasons);
  }
  const auto type = host.find("ecs.instance-type");
  if (const auto& wanted = step.settings.resources.instance_type;
      wanted && type != host.end() && type->second != *wanted)
    refuse("instance_type: " + *wanted, "this machine is a " + type->second);
  return findings;
}

/// Of the engine's answer about an image.
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

std::vector<core::Diagnostic> check_gpu_steps(const std::vector<const StepSpec*>& steps,
                                              const GpuCheckContext& gpu_check_context) {
  orchestrators::Findings found;
  const auto tell = [&](const Finding& finding, const StepSpec* step) {
    found.add({&step, 1},
              {finding.code, finding.message, {}, {}, finding.advice, finding.severity});
  };
  std::map<std::string, std::vector<Finding>> known;  // equal settings are looked at once
  for (const StepSpec* step : steps) {
    const ResourceSettings& resources = step->settings.resources;
    if (gpu_check_context.attributes &&
        (!resources.placement_constraints.items().empty() || resources.instance_type))
      for (const Finding& finding : unplaced(*step, *gpu_check_context.attributes))
        tell(finding, step);
    const settings::GpuRequest request = settings::gpu_request(resources);
    if (!request.wanted()) continue;
    const auto [findings, is_new] = known.try_emplace(settings::to_json(step->settings).dump());
    if (is_new) {
      const gpu::GpuHost host = host_of(*step, request, gpu_check_context);
      const bool does_without =
          request.if_present && gpu_check_context.gpus && host.capabilities.empty();
      if (!does_without)
        findings->second = gpu::check_compatibility(facts_of(*step, gpu_check_context), host);
    }
    for (const Finding& finding : findings->second) tell(finding, step);
  }
  return found.all();
}

gpu::GpuHost host_for(const settings::GpuRequest& request, const gpu::Inventory& inventory) {
  gpu::GpuHost host{
      gpu::Version::parse(inventory.driver), gpu::Version::parse(inventory.cuda), "", {}};
  std::set<settings::ComputeCapability> capabilities;
  for (const gpu::Device& device : inventory.devices) {
    const bool is_named = request.selection != settings::GpuRequest::Selection::devices ||
                          std::any_of(request.devices.begin(), request.devices.end(),
                                      [&](const settings::GpuDevice& each) {
                                        return each.index ? *each.index == device.index
                                                          : device.uuid.starts_with(each.uuid) ||
                                                                each.uuid.starts_with("MIG-");
                                      });
    const auto place = static_cast<std::size_t>(&device - inventory.devices.data());
    const bool is_first =
        request.selection != settings::GpuRequest::Selection::first || place < request.count;
    const bool is_right =
        (!request.model || gpu::model_matches(*request.model, device.model)) &&
        device.memory >= request.min_memory.value_or(0) &&
        device.capability >= request.min_capability.value_or(settings::ComputeCapability{});
    if (is_named && is_first && is_right && device.capability.major > 0)
      capabilities.insert(device.capability);
    // As NVIDIA_REQUIRE_CUDA calls them; others are not told by their name.
    for (const auto& [word, brand] : {std::pair{"Tesla", "tesla"}, std::pair{"GeForce", "geforce"},
                                      std::pair{"Quadro", "quadro"}, std::pair{"TITAN", "titan"}})
      if (device.model.find(word) != std::string::npos) host.brand = brand;
  }
  host.capabilities.assign(capabilities.begin(), capabilities.end());
  return host;
}

std::vector<core::Diagnostic> check_gpus(const PipelineSpec& pipeline,
                                         std::vector<core::Diagnostic> diagnostics,
                                         const Say& say) {
  if (diagnostics.empty()) return diagnostics;
  std::string source;
  try {
    if (!pipeline.file.empty()) source = core::read_file(pipeline.file);
  } catch (const core::EnvironmentError&) {
    source.clear();
  }
  const auto lines = lines_of(source);
  for (core::Diagnostic& diagnostic : diagnostics) {
    if (diagnostic.span.line == 0 || diagnostic.span.line > lines.size()) continue;
    const auto line = lines[diagnostic.span.line - 1];
    const auto begin = std::min(line.find_first_not_of(' '), line.size()),
               end = std::min(line.find(':', begin), line.size());
    diagnostic.span.column = static_cast<unsigned>(begin + 1);
    diagnostic.span.length = static_cast<unsigned>(std::max<std::size_t>(end - begin, 1));
  }
  const auto is_error = [](const core::Diagnostic& each) {
    return each.severity == core::Severity::error;
  };
  if (std::any_of(diagnostics.begin(), diagnostics.end(), is_error))
    throw core::InputError(std::move(diagnostics), pipeline.file.string(), source);
  for (const core::Diagnostic& diagnostic : diagnostics)
    say(core::render(diagnostic, shown_path(pipeline.file), source));
  return diagnostics;
}

namespace {

std::vector<core::Diagnostic> check_gpus_in(Session& session,
                                            const orchestrators::Capabilities& place,
                                            const std::vector<const StepSpec*>& steps) {
  Context& context = session.context;
  GpuCheckContext gpu_check_context;
  gpu_check_context.in_images = place.name != "local";
  if (place.name != "kubernetes")
    gpu_check_context.attributes = spec::host_attributes();  // a cluster chooses among its own
  std::optional<gpu::Inventory> inventory;
  if (place.gpus_of_this_machine &&
      std::any_of(steps.begin(), steps.end(), [](const StepSpec* step) {
        return settings::gpu_request(step->settings.resources).wanted();
      }))
    inventory = session.machine().read();
  if (inventory && !inventory->unavailable)
    gpu_check_context.gpus = [&](const settings::GpuRequest& request) {
      return host_for(request, *inventory);
    };
  std::optional<docker::EngineApi> engine;
  std::map<std::string, std::optional<gpu::ImageConfig>> configs;
  if (place.name == "docker")
    gpu_check_context.image_config =
        [&](const std::string& reference) -> std::optional<gpu::ImageConfig> {
      const auto [known, is_new] = configs.try_emplace(reference);
      if (!is_new) return known->second;
      try {
        if (!engine) engine.emplace(context.loop(), docker::find_endpoint());
        if (const auto image = context.await(engine->inspect_image(reference)))
          known->second = config_of(*image);
      } catch (const core::EnvironmentError&) {  // told by whoever cannot do without the engine
      }
      return known->second;
    };
  return check_gpu_steps(steps, gpu_check_context);
}

}  // namespace

std::vector<core::Diagnostic> check_gpus(Session& session, const Say& say) {
  std::map<const orchestrators::Capabilities*, std::vector<const StepSpec*>> places;
  for (const auto* step : session.selected_steps()) {
    const ResourceSettings& resources = step->settings.resources;
    if (resources.instance_type || !resources.placement_constraints.items().empty() ||
        settings::gpu_request(resources).wanted())
      places[&session.orchestrator->capabilities_of(*step)].push_back(step);
  }
  std::vector<core::Diagnostic> found;
  for (const auto& [place, steps] : places)
    for (auto& diagnostic : check_gpus_in(session, *place, steps))
      found.push_back(std::move(diagnostic));
  return check_gpus(session.pipeline(), std::move(found), say);
}

nlohmann::json warnings_json(const std::vector<core::Diagnostic>& warnings) {
  nlohmann::json list = nlohmann::json::array();
  for (const core::Diagnostic& each : warnings)
    list.push_back({{"code", each.code},
                    {"message", each.message},
                    {"line", each.span.line},
                    {"suggestion", each.suggestion}});
  return list;
}

void report_gpu_warnings(Session& session, Progress& progress) {
  const auto& context = session.context;
  for (const auto& warning :
       warnings_json(check_gpus(session, [&](std::string_view text) { progress.say(text); })))
    if (context.options().json)
      context.print(nlohmann::json{{"event", "warning"}, {"warning", warning}}.dump() + "\n");
}

}  // namespace pipeline::cli
