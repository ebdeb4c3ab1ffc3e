#include "cli/render_manifests.hpp"

#include <unordered_map>

#include "blobs/addresses.hpp"
#include "docker/image_plan.hpp"
#include "docker/reference.hpp"
#include "driver/step_errors.hpp"
#include "engine/graph/selection.hpp"
#include "orchestrators/kubernetes/example_job.hpp"

namespace pipeline::cli {
namespace {

using nlohmann::json;

constexpr std::size_t printed_at_once = 1 << 16;

/// File names of all outputs, by `STEP OUTPUT`; a list of steps would be searched for each input.
using FileNames = std::unordered_map<std::string, std::string>;

FileNames file_names_of(const PipelineSpec& pipeline) {
  FileNames names;
  for (const auto& step : pipeline.steps)
    for (const auto& output : step.outputs)
      names.emplace(step.name + " " + output.name, output.file_name);
  return names;
}

json job_of(const Context& context, const PipelineSpec& pipeline, const StepSpec& step,
            const FileNames& file_names) {
  const auto plan = docker::plan_image(
      step, {.root = pipeline.root, .template_dir = context.options().template_dir});
  const bool is_built = plan.build || step.program;
  const auto repository = step.settings->docker.target_repository.value_or("pipe");
  const bool has_registry = docker::names_registry(repository);
  orchestrators::kubernetes::ExampleJobOptions place;
  place.pipeline = pipeline.name;
  place.state =
      context.state_beside(pipeline.file.empty() ? pipeline.root / pipeline.name : pipeline.file);
  const auto& connection = context.options().connection;
  place.claim = {orchestrators::connection_field(connection, "claim"),
                 orchestrators::connection_field(connection, "claim_path")};
  place.node_cache = {orchestrators::connection_field(connection, "node_cache"),
                      orchestrators::connection_field(connection, "node_cache_budget")};
  place.image =
      !is_built ? plan.parent_image : repository + (has_registry ? "@DIGEST" : ":env-DIGEST");
  place.pull = !is_built || has_registry;
  place.carries = blobs::can_presign(context.options().remote_store.url);
  if (has_registry) place.agent_image = repository + "@AGENT-DIGEST";
  place.file_name_of = [&](const InputSpec& input) {
    const auto& source = input.sources.front();
    const auto found =
        input.gathered ? file_names.end() : file_names.find(source.step + " " + source.output);
    return found == file_names.end() ? input.name : found->second;
  };
  return orchestrators::kubernetes::example_job(step, place);
}

/// Returns the text of the job as an item of a list, formatted as print_json() does.
std::string item_of(const json& job) {
  std::string text = job.dump(2, ' ', false, json::error_handler_t::replace);
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos;)
    text.insert(++at, "    ");
  return "    " + text;
}

}  // namespace

core::ExitCode render_manifests(Context& context, const PipelineSpec& pipeline) {
  const auto& only = context.options().step;
  std::vector<const StepSpec*> steps;
  const auto add = [&](const StepSpec& step) {
    if (step.orchestrator.empty() || orchestrators::traits_of(step.orchestrator).renders_manifests)
      steps.push_back(&step);
  };
  if (only.empty()) {
    for (const auto& step : pipeline.steps) add(step);
  } else {
    for (const auto i : engine::steps_called(pipeline, only)) add(pipeline.steps[i]);
  }
  const auto file_names = file_names_of(pipeline);
  driver::StepErrors errors;  // All errors are reported before anything is printed.
  for (const auto* step : steps)
    errors.attempt(*step, [&] { job_of(context, pipeline, *step, file_names); });
  errors.report(pipeline);
  // Jobs are made one at a time: a list of 100,000 would take gigabytes.
  std::string text = "{\n  \"apiVersion\": \"v1\",\n  \"items\": [";
  for (const auto* step : steps) {
    text += (step == steps.front() ? "\n" : ",\n") +
            item_of(job_of(context, pipeline, *step, file_names));
    if (text.size() < printed_at_once) continue;
    context.write(text);
    text.clear();
  }
  context.write(text + (steps.empty() ? "]" : "\n  ]") + ",\n  \"kind\": \"List\"\n}\n");
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
