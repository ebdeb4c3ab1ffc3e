#include "settings/contradictions.hpp"

#include <array>

#include "settings/accelerator.hpp"
#include "settings/decode.hpp"
#include "settings/reserved_variables.hpp"

namespace pipeline::settings {
namespace {

/// Keys that only have an effect when an image is built.
constexpr std::array need_build{"dockerfile",
                                "requirements",
                                "pyproject_path",
                                "replicate_local_python_environment",
                                "local_project_install_command",
                                "apt_packages",
                                "environment",
                                "build_config"};

bool asks_for_build(const core::Value& value) {
  if (value.kind == core::Value::Kind::scalar) return value.scalar != "false";
  return !value.items.empty() || !value.members.empty();
}

const core::Value* key_of(const core::Value& map, std::string_view name) {
  for (const auto& [key, value] : map.members)
    if (key.scalar == name) return &key;
  return nullptr;
}

void report_builds(const core::Value& docker, const std::string& why, Diagnostics& diagnostics) {
  for (const char* name : need_build)
    if (const core::Value* value = docker.find(name); value && asks_for_build(*value))
      report(diagnostics, "contradiction", std::string("'") + name + "' needs a build, but " + why,
             key_of(docker, name)->span, {"remove it, or set `skip_build: false`"});
}

/// Reports variables that pipe itself sets, because the settings' variables would replace them.
void check_variables(const core::Value& docker, Diagnostics& diagnostics) {
  for (const char* key : {"environment", "runtime_environment"})
    if (const core::Value* variables = docker.find(key))
      for (const auto& [name, value] : variables->members)
        if (is_reserved_variable(name.scalar))
          report(diagnostics, "reserved-name", "'" + name.scalar + "' is set by pipe itself",
                 name.span);
}

/// @param place the position for a problem whose key is inherited and so not in `resources`
void report_gpu_problems(const std::vector<GpuProblem>& problems, const core::Value& resources,
                         core::Span place, Diagnostics& diagnostics) {
  for (const GpuProblem& problem : problems) {
    const core::Value *key = key_of(resources, problem.key), *value = resources.find(problem.key);
    core::Span span = key ? key->span : place;
    if (value && problem.code != "contradiction")
      span = problem.item && *problem.item < value->items.size() ? value->items[*problem.item].span
                                                                 : value->span;
    report(diagnostics, problem.code, problem.message, span, problem.notes, problem.suggestion);
  }
}

void check_gpus(const ResourceSettings& settings, const core::Value& value,
                Diagnostics& diagnostics) {
  const core::Value* resources = value.find("resources");
  if (!resources || resources->kind != core::Value::Kind::map) return;
  std::vector<GpuProblem> problems;
  gpu_request(settings, problems);
  report_gpu_problems(problems, *resources, resources->span, diagnostics);
}

/// Checks a step's own GPU keys merged with those that it inherits from the pipeline.
void check_merged_gpus(const ResourceSettings& pipeline, const ResourceSettings& step,
                       const core::Value& resources, Diagnostics& diagnostics) {
  std::vector<GpuProblem> own, inherited, merged;
  gpu_request(pipeline, inherited);
  gpu_request(step, own);
  if (!own.empty() || !inherited.empty()) return;
  const GpuRequest request = gpu_request(
      merge(Settings{.resources = pipeline}, Settings{.resources = step}).resources, merged);
  for (GpuProblem& problem : merged)
    problem.notes.emplace_back("the other key is in the pipeline's settings");
  report_gpu_problems(merged, resources, resources.span, diagnostics);
  if (!merged.empty() || request.wanted()) return;
  for (const char* name : {"gpu_class", "gpu_memory", "compute_capability", "auto_select_gpus",
                           "gpu_ids", "preflight"})
    if (const core::Value* key = key_of(resources, name);
        key && resources.find(name)->scalar != "false" && resources.find(name)->scalar != "off")
      report(diagnostics, "contradiction",
             std::string("'") + name + "' is about GPUs, but the step asks for none", key->span, {},
             "add a number, as in `gpu_count: 1`");
}

void check_topology(const KubernetesTopology& topology, const core::Value& value,
                    Diagnostics& diagnostics) {
  if (!topology.required || !topology.preferred) return;
  const auto& found = *value.find("kubernetes")->find("topology");
  report(diagnostics, "contradiction", "'preferred' and 'required' both choose the nodes' topology",
         key_of(found, "preferred")->span, {"remove one: 'required' is the stricter"});
}

}  // namespace

void check_contradictions(const Settings& settings, const core::Value& value,
                          Diagnostics& diagnostics) {
  check_gpus(settings.resources, value, diagnostics);
  check_topology(settings.kubernetes.topology, value, diagnostics);
  const core::Value* docker = value.find("docker");
  if (!docker || docker->kind != core::Value::Kind::map) return;
  check_variables(*docker, diagnostics);
  const DockerSettings& docker_settings = settings.docker;
  if (docker_settings.skip_build.value_or(false))
    report_builds(*docker, "'skip_build' is true", diagnostics);
  if (docker_settings.parent_image && docker_settings.dockerfile)
    report(diagnostics, "contradiction",
           "'dockerfile' and 'parent_image' both say what the image is built on",
           key_of(*docker, "dockerfile")->span,
           {"remove one: the image that 'dockerfile' makes is the parent"});
  if (settings.resources.shm_size && docker_settings.run_args.contains("shm_size"))
    report(diagnostics, "contradiction",
           "'shm_size' of 'run_args' and of 'resources' both say how large /dev/shm is",
           key_of(*docker->find("run_args"), "shm_size")->span,
           {"remove the one in 'run_args': that of 'resources' holds on every orchestrator"});
}

void check_against_pipeline(const Settings& pipeline, const Settings& step,
                            const core::Value& step_value, Diagnostics& diagnostics) {
  if (const core::Value* resources = step_value.find("resources");
      resources && resources->kind == core::Value::Kind::map)
    check_merged_gpus(pipeline.resources, step.resources, *resources, diagnostics);
  const core::Value* docker = step_value.find("docker");
  if (docker && pipeline.docker.skip_build.value_or(false) && !step.docker.skip_build)
    report_builds(*docker, "the pipeline's settings say `skip_build: true`", diagnostics);
}

}  // namespace pipeline::settings
