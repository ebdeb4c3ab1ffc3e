#include "gpu/step_checks.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/joined.hpp"
#include "gpu/instance_types.hpp"
#include "gpu/model.hpp"
#include "model/findings.hpp"
#include "settings/accelerator.hpp"
#include "settings/settings.hpp"

namespace pipeline::gpu {
namespace {

/// Returns true if the image that is built for the step may get CUDA in a way that is not
/// inspected.
bool may_bring_cuda(const DockerSettings& docker) {
  if (docker.dockerfile || docker.pyproject_path || docker.local_project_install_command ||
      docker.replicate_local_python_environment.value_or(false))
    return true;
  const auto& packages = docker.apt_packages.items();
  return std::any_of(packages.begin(), packages.end(), [](const std::string& name) {
    return name.find("cuda") != std::string::npos || name.find("cudnn") != std::string::npos;
  });
}

/// Returns true if the step's variables let its container start on an older driver than the image
/// asks for.
bool allows_older_driver(const StepSpec& step) {
  StringMap variables = step.settings->docker.environment;
  for (const auto& [name, value] : step.settings->docker.runtime_environment)
    variables.insert_or_assign(name, value);
  for (const auto& [name, value] : step.environment)
    if (value) variables.insert_or_assign(name, *value);
  return disables_require(variables);
}

/// Returns the image and the packages of the step, as far as CUDA depends on them.
CudaFacts facts_of(const StepSpec& step, const StepCheckContext& context) {
  const DockerSettings& docker = step.settings->docker;
  CudaFacts facts;
  // An image without a platform of its own has this machine's platform.
  const std::string platform = docker.platform.value_or("");
#ifdef __aarch64__
  const bool is_x86 = platform.find("amd64") != std::string::npos;
#else
  const bool is_x86 = platform.find("arm") == std::string::npos;
#endif
  if (!docker.skip_build.value_or(false)) {
    facts.wheels =
        wheels_of(docker.requirements.items(), docker.python_package_installer_args, is_x86);
    facts.may_bring_cuda = may_bring_cuda(docker);
  }
  if (!context.in_images || docker.dockerfile) return facts;
  facts.image = docker.parent_image.value_or(std::string(settings::default_parent_image));
  facts.cuda = image_cuda(facts.image,
                          context.image_config ? context.image_config(facts.image) : std::nullopt);
  if (allows_older_driver(step)) facts.cuda->disable_require = true;
  return facts;
}

/// Returns the machine that the step will run on: this one, or the instance type that it names.
GpuHost host_of(const StepSpec& step, const settings::GpuRequest& request,
                const StepCheckContext& context) {
  if (context.gpus) return context.gpus(request);
  GpuHost host;
  const auto& name = step.settings->resources.instance_type;
  if (const InstanceType* type = name ? find_instance_type(*name) : nullptr;
      type && type->is_nvidia())
    host.capabilities = {type->capability};
  return host;
}

/// Returns why this machine may not run the step: its placement constraints and instance type.
std::vector<Finding> unplaced(const StepSpec& step, const StepCheckContext& context) {
  const HostAttributes& host = *context.attributes;
  std::vector<Finding> findings;
  const auto refuse = [&](const std::string& text, const std::string& reason) {
    findings.push_back({core::Severity::error, "placement",
                        "the constraint `" + text + "` is not satisfied here: " + reason,
                        "attributes of this machine are set in " + context.host_file});
  };
  for (const std::string& text : step.settings->resources.placement_constraints.items()) {
    const auto parsed = parse_placement(text);
    if (const auto* error = std::get_if<PlacementError>(&parsed)) {
      refuse(text, error->message);  // A program's expression; those of a file have been checked.
      continue;
    }
    auto reasons = core::joined(unsatisfied(std::get<Placement>(parsed), host), "; ");
    // If the expression is a single comparison, its text need not be repeated.
    if (const std::string whole = "`" + text + "`: "; reasons.starts_with(whole))
      reasons.erase(0, whole.size());
    if (!reasons.empty()) refuse(text, reasons);
  }
  const auto type = host.find("ecs.instance-type");
  if (const auto& wanted = step.settings->resources.instance_type;
      wanted && type != host.end() && type->second != *wanted)
    refuse("instance_type: " + *wanted, "this machine is a " + type->second);
  return findings;
}

}  // namespace

std::vector<core::Diagnostic> check_steps(const std::vector<const StepSpec*>& steps,
                                          const StepCheckContext& context) {
  model::Findings found;
  const auto report = [&](const Finding& finding, const StepSpec* step) {
    found.add({&step, 1},
              {finding.code, finding.message, {}, {}, finding.advice, finding.severity});
  };
  // Steps with equal settings are checked once.
  std::map<std::pair<std::string, bool>, std::vector<Finding>> known;
  for (const StepSpec* step : steps) {
    const ResourceSettings& resources = step->settings->resources;
    if (context.attributes &&
        (!resources.placement_constraints.items().empty() || resources.instance_type))
      for (const Finding& finding : unplaced(*step, context)) report(finding, step);
    const settings::GpuRequest request = settings::gpu_request(resources);
    if (!request.wanted()) continue;
    const auto [findings, is_new] =
        known.try_emplace({settings::to_json(step->settings).dump(), allows_older_driver(*step)});
    if (is_new) {
      const GpuHost host = host_of(*step, request, context);
      const bool does_without = request.if_present && context.gpus && host.capabilities.empty();
      if (!does_without) findings->second = check_compatibility(facts_of(*step, context), host);
    }
    for (const Finding& finding : findings->second) report(finding, step);
  }
  return found.all();
}

GpuHost host_for(const settings::GpuRequest& request, const Inventory& inventory) {
  GpuHost host{Version::parse(inventory.driver), Version::parse(inventory.cuda), "", {}};
  std::set<settings::ComputeCapability> capabilities;
  for (const Device& device : inventory.devices) {
    // The UUID of a MIG device does not say on which GPU it is, so it may be on any.
    const bool is_named = request.selection != settings::GpuRequest::Selection::devices ||
                          std::any_of(request.devices.begin(), request.devices.end(),
                                      [&](const settings::GpuDevice& each) {
                                        return each.index ? *each.index == device.index
                                                          : device.uuid.starts_with(each.uuid) ||
                                                                each.uuid.starts_with("MIG-");
                                      });
    const auto position = static_cast<std::size_t>(&device - inventory.devices.data());
    const bool is_first =
        request.selection != settings::GpuRequest::Selection::first || position < request.count;
    const bool is_right =
        (!request.model || model_matches(*request.model, device.model)) &&
        device.memory >= min_reported_memory(request.min_memory.value_or(0)) &&
        device.capability >= request.min_capability.value_or(settings::ComputeCapability{});
    if (is_named && is_first && is_right && device.capability.major > 0)
      capabilities.insert(device.capability);
    // The brand names of NVIDIA_REQUIRE_CUDA; other brands cannot be recognised by the GPU's name.
    for (const auto& [word, brand] : {std::pair{"Tesla", "tesla"}, std::pair{"GeForce", "geforce"},
                                      std::pair{"Quadro", "quadro"}, std::pair{"TITAN", "titan"}})
      if (device.model.find(word) != std::string::npos) host.brand = brand;
  }
  host.capabilities.assign(capabilities.begin(), capabilities.end());
  return host;
}

}  // namespace pipeline::gpu
