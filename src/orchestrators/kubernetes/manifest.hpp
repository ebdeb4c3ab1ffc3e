/// @file
/// An attempt as the objects that a cluster makes of it: a Job of one pod, and a Secret if the step
/// has secrets. Pure: nothing is asked, nothing is done.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "orchestrators/kubernetes/affinity.hpp"
#include "orchestrators/kubernetes/pod_files.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators {

/// What a pod that sees no file of this machine has to carry (stager/carry.hpp): two documents with
/// permissions in them, not to be shown.
struct StagedFiles {
  std::string fetch, collect;
};

/// What a Job is like besides the attempt that runs in it.
struct JobOptions {
  std::string image;  ///< Reference.
  bool pull = false;  ///< Nodes may fetch it from its registry; else they have it.
  std::string user;   ///< UID:GID of the caller, for a step that names no user.
  std::string owner;  ///< Whose Jobs these are: value of the label pipe.state.
  std::filesystem::path
      agent;  ///< Starts the command: a file of this machine, and so of the nodes ...
  SharedClaim claim =
      {};  ///< Through which pods see this machine's files; without a name nodes see them.
  std::string agent_image;  ///< ... or, if not empty, an image that brings it (AgentImages).
  bool carries = false;     ///< Files come and go through a bucket; then there is an `agent_image`,
                            ///< with the stager.
  std::vector<std::string> program =
      {};                     ///< For a step with StepSpec::program: the words that start it here.
  GpuModels gpu_models = {};  ///< Those that the cluster is known to have.
};

/// The container of the pod that runs the step.
inline const std::string step_container = "step";
/// What brings it the agent, where that comes in an image.
inline const std::string agent_container = "agent";
/// Where it is in there.
inline constexpr const char *agent_in_image = "/pipe/agent", *stager_in_image = "/pipe/stager",
                            *authorities_in_image = "/pipe/ca.pem";

/// Where in Attempt::scratch the driver leaves the word that a step which is told to stop has to be
/// killed.
inline constexpr std::string_view stop_file_name = ".pipe-stop";
/// ... and where the agent keeps all that the step has printed, if the driver sees that folder.
inline constexpr std::string_view kept_log_name = ".pipe-log";

/// `pipe-STEP-DIGEST`: the same for the same attempt, whoever asks; a DNS label that leaves room
/// for the pod's suffix.
std::string job_name(const std::string& run_id, const std::string& step, unsigned number);
inline std::string job_name(const Attempt& attempt) {
  return job_name(attempt.run_id, attempt.step.name, attempt.number);
}
/// A label's value for any text: what is none is cut, with a digest at its end.
std::string label_value(const std::string& text);
/// Of an argument or a variable's value, as Kubernetes is to pass it on unchanged.
std::string literally(const std::string& text);
/// What tells this attempt's objects from all others. Names that are no label's value are cut, with
/// a digest at their end.
StringMap job_labels(const Attempt& attempt, const std::string& owner);
/// `pipe.run=X,pipe.state=Y`
std::string run_selector(const std::string& run_id, const std::string& owner);

/// batch/v1. Holds no secret. Throws InputError for what a cluster cannot do.
nlohmann::json job_manifest(const Attempt& attempt, const JobOptions& place);
/// Not to be shown; nothing for a step without secrets and permissions.
std::optional<nlohmann::json> secret_manifest(const Attempt& attempt, const std::string& owner,
                                              const std::optional<StagedFiles>& carried = {});

/// Of the step's settings those that a cluster does not honour, in words; empty if there is none.
std::string unhonoured(const StepSpec& step);

}  // namespace pipeline::orchestrators
