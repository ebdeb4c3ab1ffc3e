#include "cli/render_manifests.hpp"

#include "docker/image_plan.hpp"
#include "docker/reference.hpp"
#include "engine/decision.hpp"
#include "orchestrators/kubernetes/example_job.hpp"

namespace pipeline::cli {
namespace {

using nlohmann::json;

std::string file_name_of(const PipelineSpec& pipeline, const InputSpec& input) {
  if (input.gathered) return input.name;
  for (const auto& step : pipeline.steps)
    for (const auto& output : step.outputs)
      if (step.name == input.sources.front().step && output.name == input.sources.front().output)
        return output.file_name;
  return input.name;
}

json job_of(const Context& context, const PipelineSpec& pipeline, const StepSpec& step) {
  const auto state =
      context.state_beside(pipeline.file.empty() ? pipeline.root / pipeline.name : pipeline.file);
  const auto plan = docker::plan_image(
      step, {.root = pipeline.root, .template_dir = context.options().template_dir});
  const bool is_built = plan.build || step.program;
  const auto repository = step.settings.docker.target_repository.value_or("pipe");
  const bool has_registry = docker::names_registry(repository);
  orchestrators::ExampleJobOptions place;
  place.pipeline = pipeline.name;
  place.state = state;
  place.claim = {context.options().claim, context.options().claim_path};
  place.image =
      !is_built ? plan.parent_image : repository + (has_registry ? "@DIGEST" : ":env-DIGEST");
  place.pull = !is_built || has_registry;
  place.carries = context.options().artifact_store.is_given();
  if (has_registry) place.agent_image = repository + "@AGENT-DIGEST";
  place.file_name_of = [&](const InputSpec& input) { return file_name_of(pipeline, input); };
  return orchestrators::example_job(step, place);
}

}  // namespace

core::ExitCode render_manifests(Context& context, const PipelineSpec& pipeline) {
  const auto& only = context.options().step;
  json jobs = json::array();
  const auto add = [&](const StepSpec& step) {
    if (step.orchestrator.empty() || step.orchestrator == "kubernetes")
      jobs.push_back(job_of(context, pipeline, step));
  };
  if (only.empty()) {
    for (const auto& step : pipeline.steps) add(step);
  } else {
    for (const auto i : engine::steps_called(pipeline, only)) add(pipeline.steps[i]);
  }
  context.print_json({{"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(jobs)}});
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
