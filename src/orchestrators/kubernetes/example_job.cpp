#include "orchestrators/kubernetes/example_job.hpp"

#include "core/user_environment.hpp"

namespace pipeline::orchestrators::kubernetes {

nlohmann::json example_job(const StepSpec& step, const ExampleJobOptions& options) {
  StringMap environment, secrets;
  for (const auto& [name, value] : step.environment)
    environment[name] = value.value_or("VALUE-OF-THE-CALLER");
  for (const auto& secret : step.secrets) secrets[secret.name] = "";
  std::vector<AttemptInput> inputs;
  for (const auto& input : step.inputs)
    inputs.push_back({input.name, options.file_name_of ? options.file_name_of(input) : input.name,
                      options.state / "artifacts" / "DIGEST"});
  std::vector<AttemptOutput> outputs;
  for (const auto& output : step.outputs) outputs.push_back({output.name, output.file_name});
  const auto work = options.state / "work" / "RUN" / (step.name + ".1");
  const AttemptSpec attempt{.step = step,
                            .pipeline = options.pipeline,
                            .run_id = "RUN",
                            .number = 1,
                            .code = options.state / "artifacts" / "CODE",
                            .inputs = std::move(inputs),
                            .outputs = work / "outputs",
                            .output_names = std::move(outputs),
                            .scratch = work / "scratch",
                            .environment = std::move(environment),
                            .secrets = std::move(secrets)};
  JobOptions job;
  job.image = options.image;
  job.claim = options.claim;
  job.pull = options.pull;
  job.user = options.user.empty() ? core::user_and_group() : options.user;
  job.owner = "STATE";
  job.has_stager = options.has_stager;
  job.node_cache = options.node_cache;
  if (!options.agent_image.empty())
    job.agent_image = options.agent_image;
  else if (options.has_stager)
    job.agent_image = "pipe:agent-DIGEST";
  else
    job.agent = options.state / "kubernetes" / "agent-DIGEST";
  if (step.program) job.program = {"/PROGRAM"};
  job.gpu_models = options.gpu_models;
  return job_manifest(attempt, job);
}

}  // namespace pipeline::orchestrators::kubernetes
