#include "settings/contradictions.hpp"

#include <array>

#include "settings/decode.hpp"

namespace pipeline {
namespace {

/// Keys that say what is to be installed in an image, or how it is to be built.
constexpr std::array kNeedBuild{
    "dockerfile",   "requirements", "pyproject_path", "replicate_local_python_environment", "local_project_install_command",
    "apt_packages", "environment",  "build_config"};

bool asks_for_build(const Value& value) {
  if (value.kind == Value::Kind::scalar) return value.scalar != "false";
  return !value.items.empty() || !value.members.empty();
}

const Value* key_of(const Value& map, std::string_view name) {
  for (const auto& [key, value] : map.members)
    if (key.scalar == name) return &key;
  return nullptr;
}

void report_builds(const Value& docker, const std::string& why, Diagnostics& diagnostics) {
  for (const char* name : kNeedBuild)
    if (const Value* value = docker.find(name); value && asks_for_build(*value))
      report(diagnostics, "contradiction", std::string("'") + name + "' needs a build, but " + why, key_of(docker, name)->span,
             {"remove it, or set `skip_build: false`"});
}

}  // namespace

void check_contradictions(const Settings& settings, const Value& value, Diagnostics& diagnostics) {
  const Value* docker = value.find("docker");
  if (!docker || docker->kind != Value::Kind::map) return;
  const DockerSettings& docker_settings = settings.docker;
  if (docker_settings.skip_build.value_or(false)) report_builds(*docker, "'skip_build' is true beside it", diagnostics);
  if (docker_settings.parent_image && docker_settings.dockerfile)
    report(diagnostics, "contradiction", "'dockerfile' and 'parent_image' both say what the image is built on", key_of(*docker, "dockerfile")->span,
           {"remove one: the image that 'dockerfile' makes is the parent"});
}

void check_against_pipeline(const Settings& pipeline, const Settings& step, const Value& step_value, Diagnostics& diagnostics) {
  const Value* docker = step_value.find("docker");
  if (docker && pipeline.docker.skip_build.value_or(false) && !step.docker.skip_build)
    report_builds(*docker, "the pipeline's settings say `skip_build: true`", diagnostics);
}

}  // namespace pipeline
