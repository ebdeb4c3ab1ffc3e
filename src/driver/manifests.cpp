#include "driver/manifests.hpp"

#include <unordered_map>

#include <nlohmann/json.hpp>

#include "blobs/addresses.hpp"
#include "docker/image_plan.hpp"
#include "docker/reference.hpp"
#include "driver/step_errors.hpp"
#include "engine/graph/selection.hpp"
#include "orchestrators/catalog/catalog.hpp"
#include "orchestrators/kubernetes/example_job.hpp"

namespace pipeline::driver {
namespace {

using nlohmann::json;

constexpr std::size_t bytes_written_at_once = 1 << 16;

/// File names of all outputs, keyed by `STEP OUTPUT`, so that no list is searched for each input.
using FileNames = std::unordered_map<std::string, std::string>;

FileNames file_names_of(const PipelineSpec& pipeline) {
  FileNames names;
  for (const auto& step : pipeline.steps)
    for (const auto& output : step.outputs)
      names.emplace(step.name + " " + output.name, output.file_name);
  return names;
}

/// Returns the step's Job, with placeholders for the values that only a run has.
json job_of(const Workspace& workspace, const PipelineSpec& pipeline, const StepSpec& step,
            const FileNames& file_names) {
  const auto plan = docker::plan_image(
      step, {.root = pipeline.root, .template_dir = workspace.options().template_dir});
  const bool is_built = plan.build || step.program;
  const auto repository = step.settings->docker.target_repository.value_or("pipe");
  const bool has_registry = docker::names_registry(repository);
  orchestrators::kubernetes::ExampleJobOptions job;
  job.pipeline = pipeline.name;
  job.state =
      workspace.state_beside(pipeline.file.empty() ? pipeline.root / pipeline.name : pipeline.file);
  const auto& connection = workspace.options().connection;
  job.claim = {orchestrators::connection_field(connection, "claim"),
               orchestrators::connection_field(connection, "claim_path")};
  job.node_cache = {orchestrators::connection_field(connection, "node_cache"),
                    orchestrators::connection_field(connection, "node_cache_budget")};
  job.image =
      !is_built ? plan.parent_image : repository + (has_registry ? "@DIGEST" : ":env-DIGEST");
  job.pull = !is_built || has_registry;
  job.has_stager = blobs::can_presign(workspace.options().remote_store.url);
  if (has_registry) job.agent_image = repository + "@AGENT-DIGEST";
  job.file_name_of = [&](const InputSpec& input) {
    const auto& source = input.sources.at(0);
    const auto found =
        input.gathered ? file_names.end() : file_names.find(source.step + " " + source.output);
    return found == file_names.end() ? input.name : found->second;
  };
  return orchestrators::kubernetes::example_job(step, job);
}

/// Returns the text of the Job as an item of the list, indented as other commands indent JSON.
std::string item_of(const json& job) {
  std::string text = job.dump(2, ' ', false, json::error_handler_t::replace);
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos;)
    text.insert(++at, "    ");
  return "    " + text;
}

}  // namespace

void write_manifests(const Workspace& workspace, const PipelineSpec& pipeline,
                     const std::function<void(std::string_view)>& write) {
  const auto& only = workspace.options().step;
  std::vector<const StepSpec*> steps;
  const auto add = [&](const StepSpec& step) {
    if (step.orchestrator.empty() || orchestrators::traits_of(*step.orchestrator).renders_manifests)
      steps.push_back(&step);
  };
  if (only.empty()) {
    for (const auto& step : pipeline.steps) add(step);
  } else {
    for (const auto i : engine::steps_called(pipeline, only)) add(pipeline.steps[i]);
  }
  const auto file_names = file_names_of(pipeline);
  StepErrors errors;
  for (const auto* step : steps)
    errors.collect(*step, [&] { job_of(workspace, pipeline, *step, file_names); });
  errors.report(pipeline);
  // Each Job is written before the next is made: 100,000 of them would take gigabytes.
  std::string text = "{\n  \"apiVersion\": \"v1\",\n  \"items\": [";
  for (const auto* step : steps) {
    text += (step == steps.front() ? "\n" : ",\n") +
            item_of(job_of(workspace, pipeline, *step, file_names));
    if (text.size() < bytes_written_at_once) continue;
    write(text);
    text.clear();
  }
  write(text + (steps.empty() ? "]" : "\n  ]") + ",\n  \"kind\": \"List\"\n}\n");
}

}  // namespace pipeline::driver
