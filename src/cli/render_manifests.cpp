#include "cli/render_manifests.hpp"

#include <unistd.h>

#include "docker/image_plan.hpp"
#include "docker/reference.hpp"
#include "engine/decision.hpp"
#include "orchestrators/kubernetes/manifest.hpp"

namespace pipeline::cli {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

class NoLog : public LogSink {
 public:
  void write(Stream, std::string_view) override {}
};

std::string file_name_of(const PipelineSpec& pipeline, const InputSpec& input) {
  if (input.gathered) return input.name;
  for (const auto& step : pipeline.steps)
    for (const auto& output : step.outputs)
      if (step.name == input.sources.front().step && output.name == input.sources.front().output) return output.file_name;
  return input.name;
}

json job_of(const Context& context, const PipelineSpec& pipeline, const StepSpec& step) {
  const auto state = context.state_beside(pipeline.file.empty() ? pipeline.root / pipeline.name : pipeline.file);
  const auto plan = docker::plan_image(step, {.root = pipeline.root, .template_dir = context.options().template_dir});
  StringMap environment, secrets;
  for (const auto& [name, value] : step.environment) environment[name] = value.value_or("VALUE-OF-THE-CALLER");
  for (const auto& secret : step.secrets) secrets[secret.name] = "";
  std::vector<AttemptInput> inputs;
  for (const auto& input : step.inputs) inputs.push_back({input.name, file_name_of(pipeline, input), state / "artifacts" / "DIGEST"});
  std::vector<AttemptOutput> outputs;
  for (const auto& output : step.outputs) outputs.push_back({output.name, output.file_name});
  NoLog log;
  CancelSource cancel;
  const auto work = state / "work" / "RUN" / (step.name + ".1");
  const Attempt attempt{.step = step,
                        .pipeline = pipeline.name,
                        .run_id = "RUN",
                        .number = 1,
                        .code = state / "artifacts" / "CODE",
                        .inputs = std::move(inputs),
                        .outputs = work / "outputs",
                        .output_names = std::move(outputs),
                        .scratch = work / "scratch",
                        .environment = std::move(environment),
                        .secrets = std::move(secrets),
                        .gpus = {},
                        .log = log,
                        .cancel = cancel};
  const bool is_built = plan.build || step.program;
  const auto repository = step.settings.docker.target_repository.value_or("pipe");
  const bool has_registry = docker::names_registry(repository);
  ClusterPlace place;
  place.image = !is_built ? plan.parent_image : repository + (has_registry ? "@DIGEST" : ":env-DIGEST");
  place.pull = !is_built || has_registry;
  place.user = std::to_string(geteuid()) + ":" + std::to_string(getegid());
  place.owner = "STATE";
  if (has_registry)
    place.agent_image = repository + "@AGENT-DIGEST";
  else
    place.agent = state / "kubernetes" / "agent-DIGEST";
  if (step.program) place.program = {"/PROGRAM"};
  return job_manifest(attempt, place);
}

}  // namespace

ExitCode render_manifests(Context& context, const PipelineSpec& pipeline) {
  const auto& only = context.options().step;
  json jobs = json::array();
  const auto add = [&](const StepSpec& step) {
    if (step.orchestrator.empty() || step.orchestrator == "kubernetes") jobs.push_back(job_of(context, pipeline, step));
  };
  if (only.empty()) {
    for (const auto& step : pipeline.steps) add(step);
  } else {
    for (const auto i : engine::steps_called(pipeline, only)) add(pipeline.steps[i]);
  }
  context.print_json({{"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(jobs)}});
  return ExitCode::ok;
}

}  // namespace pipeline::cli
