/// @file
/// Reads pipeline.yaml, or an ECS task definition, into a PipelineSpec.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <pipeline/spec.hpp>

#include "core/value.hpp"

namespace pipeline::spec {

struct LoadOptions {
  /// The values of `--param NAME=VALUE`, or `STEP.NAME=VALUE` for a step's own parameter. A value
  /// is read with the type that the file's own value has.
  std::map<std::string, std::string> parameters;
  /// Positions of the parameters that a file has set, for messages: `few.yaml:2:1`, by name. Other
  /// parameters come from `--param`.
  std::map<std::string, std::string> parameter_places = {};
  /// Receives the parts of a task definition that pipe does not support; may be null.
  std::vector<std::string>* notices = nullptr;
};

/// Reads and checks the file. Throws InputError with all errors of the file, or EnvironmentError if
/// it cannot be read. Requirements files are read here, so that DockerSettings::requirements is
/// always a list.
PipelineSpec load(const std::filesystem::path& file, const LoadOptions& options = {});
/// Parses a text as load() does; `file` is the name for messages and the base of relative paths.
PipelineSpec parse(std::string_view text, const std::filesystem::path& file,
                   const LoadOptions& options = {});

/// Reads a document from another source, such as a program, as load() does. Relative paths are
/// resolved against `file`.
PipelineSpec read(const core::Value& root, const std::filesystem::path& file,
                  const LoadOptions& options = {});
/// Converts a task definition to an equivalent pipeline file in YAML. Throws as load() does, and
/// InputError for a file that is not a task definition.
std::string import_task_definition(const std::filesystem::path& file,
                                   std::vector<std::string>& notices);

/// Returns the JSON Schema of a pipeline file (draft 2020-12); every key has its description.
nlohmann::json schema();

}  // namespace pipeline::spec
