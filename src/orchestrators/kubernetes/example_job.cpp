#include "orchestrators/kubernetes/example_job.hpp"

#include "core/user_environment.hpp"

namespace pipeline::orchestrators::kubernetes {
nlohmann::json example_job(const StepSpec& step, const ExampleJobOptions& place) {
  StringMap environment, secrets;
  for (const auto& [name, value] : step.environment)
    environment[name] = value.value_or("VALUE-OF-THE-CALLER");
  for (const auto& secret : step.secrets) secrets[secret.name] = "";
  std::vector<AttemptInput> inputs;
  for (const auto& input : step.inputs)
    inputs.push_back({input.name, place.file_name_of ? place.file_name_of(input) : input.name,
                      place.state / "artifacts" / "DIGEST"});
  std::vector<AttemptOutput> outputs;
  for (const auto& output : step.outputs) outputs.push_back({output.name, output.file_name});
  const auto work = place.state / "work" / "RUN" / (step.name + ".1");
  const AttemptSpec attempt{.step = step,
                            .pipeline = place.pipeline,
                            .run_id = "RUN",
                            .number = 1,
                            .code = place.state / "artifacts" / "CODE",
                            .inputs = std::move(inputs),
                            .outputs = work / "outputs",
                            .output_names = std::move(outputs),
                            .scratch = work / "scratch",
                            .environment = std::move(environment),
                            .secrets = std::move(secrets)};
  JobOptions cluster;
  cluster.image = place.image;
  cluster.claim = place.claim;
  cluster.pull = place.pull;
  cluster.user = place.user.empty() ? core::user_and_group() : place.user;
  cluster.owner = "STATE";
  cluster.agent_image = place.agent_image;
  cluster.has_stager = place.has_stager;
  cluster.node_cache = place.node_cache;
  if (place.has_stager && place.agent_image.empty()) cluster.agent_image = "pipe:agent-DIGEST";
  if (cluster.agent_image.empty()) cluster.agent = place.state / "kubernetes" / "agent-DIGEST";
  if (step.program) cluster.program = {"/PROGRAM"};
  cluster.gpu_models = place.gpu_models;
  return job_manifest(attempt, cluster);
}

}  // namespace pipeline::orchestrators::kubernetes
