/// @file
/// The cluster objects of an attempt: a Job with one pod, and a Secret if the step has secrets.
/// Pure: makes no requests.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "orchestrators/kubernetes/affinity.hpp"
#include "orchestrators/kubernetes/pod_files.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators::kubernetes {

class GangPods;
struct GangJob;

/// The stager's two documents for a pod that sees no file of this machine (stager/staging.hpp). The
/// documents contain signed URLs and must not be shown.
struct StagedFiles {
  std::string fetch, collect;
};

/// The properties of a Job that do not depend on the attempt.
struct JobOptions {
  std::string image;            ///< Reference.
  bool pull = false;            ///< Nodes may pull it from its registry; otherwise they have it.
  std::string user;             ///< UID:GID of the invoking user, for a step that names no user.
  std::string owner;            ///< Owner of the Jobs: value of the label pipe.state.
  std::filesystem::path agent;  ///< The agent as a file of this machine that the nodes see.
  SharedClaim claim = {};   ///< The claim through which pods see this machine's files; without a
                            ///< name nodes see them directly.
  std::string agent_image;  ///< If not empty, an image that contains the agent (AgentImages).
  bool has_stager = false;  ///< Files are exchanged through the remote store; `agent_image` is then
                            ///< set and contains the stager.
  NodeCache node_cache = {};            ///< Used if `has_stager`.
  PreferredNodes preferred_nodes = {};  ///< Nodes whose caches hold much of the inputs.
  std::vector<std::string> program =
      {};  ///< For a step with StepSpec::program: the command that starts the program here.
  StringMap services = {};      ///< Images of the step's services, by name.
  GpuModels gpu_models = {};    ///< GPU models that the cluster is known to have.
  GangPods* gang = nullptr;     ///< Set for a step with nodes.
  GangJob* gang_job = nullptr;  ///< The Job of all its nodes; null: each has its own.
};

/// Name of the pod's container that runs the step.
inline const std::string step_container = "step";
/// Name of the init container that copies the agent from its image.
inline const std::string agent_container = "agent";
/// Paths in the agent's image.
inline constexpr const char *agent_in_image = "/pipe/agent", *stager_in_image = "/pipe/stager",
                            *authorities_in_image = "/pipe/ca.pem";

/// File in Attempt::scratch by which the driver asks the agent to kill a stopped step.
inline constexpr std::string_view stop_file_name = ".pipe-stop";
/// File in Attempt::scratch with the step's whole output, if the driver sees that folder.
inline constexpr std::string_view kept_log_name = ".pipe-log";

/// Returns `pipe-STEP-DIGEST`, a function of the attempt alone; a DNS label that leaves room for
/// the pod's suffix.
/// @param node of a step with nodes: which one, or `all`, and which try; otherwise empty
std::string job_name(const std::string& run_id, const std::string& step, unsigned number,
                     const std::string& node = {});
std::string job_name(const AttemptSpec& attempt);
/// Labels of Jobs of a step with nodes: the node, if each node has a Job of its own, and
/// NodeAddresses::tries.
inline constexpr const char *node_label = "pipe.node", *try_label = "pipe.try";
/// Returns a label value for any text; an invalid text is shortened and gets a digest at its end.
std::string label_value(const std::string& text);
/// Escapes `$` in an argument or a variable's value, so that Kubernetes passes the text on
/// unchanged, except that node_mark becomes the index of the pod.
std::string escape_references(const std::string& text);
/// Adds to a container's securityContext what namespaces with the policy `restricted` demand, as
/// far as its user allows that and nothing else is given.
void restrict_privileges(nlohmann::json& context);
/// Returns the labels that identify this attempt's objects, with names as label_value() makes them.
StringMap job_labels(const AttemptSpec& attempt, const std::string& owner);
/// Returns `NAME=VALUE,NAME=VALUE`, the selector of objects that have all of these labels.
std::string label_selector(const StringMap& labels);
/// Returns `pipe.run=X,pipe.state=Y`.
std::string run_selector(const std::string& run_id, const std::string& owner);
/// Returns the labels that all Jobs of an attempt have.
StringMap attempt_labels(const std::string& run_id, const std::string& step, unsigned number,
                         const std::string& owner);
/// Returns `pipe.shell=X`.
std::string shell_selector(const std::string& id);

/// Returns the attempt's Job (batch/v1), which contains no secrets. Throws InputError for a setting
/// that no cluster can honour.
nlohmann::json job_manifest(const AttemptSpec& attempt, const JobOptions& options);
/// Returns the attempt's Secret, which must not be shown; nothing for a step without secrets and
/// staged files.
std::optional<nlohmann::json> secret_manifest(const AttemptSpec& attempt, const std::string& owner,
                                              const std::optional<StagedFiles>& staged = {});

/// Bytes up to which every cluster stores a Job: etcd's limit of 1.5 MiB, less what a server adds
/// to an object. The data of a Secret have a limit of 1 MiB, which the server checks.
inline constexpr std::size_t max_object_bytes = 1'400'000;
/// Returns why a Job or a Secret cannot be created: `its Job would take 4.4 MiB, ...`.
std::string too_large(const std::string& kind, std::size_t bytes);
/// Advice for an object that is too large.
inline constexpr const char* shorter_line =
    "pass what is long in a file: an input, or a file of the step's `code`";

/// Returns true if the pod's stager uploads the attempt's checkpoint.
bool sends_checkpoint(const AttemptSpec& attempt, const JobOptions& options);
/// Returns the limit of each stage before the pod's start.
std::chrono::seconds startup_timeout(const StepSpec& step);
/// Returns how long the pod has to end when it is asked to stop: the step's own time, and that of
/// the upload of its checkpoint.
unsigned grace_seconds(const AttemptSpec& attempt, const JobOptions& options);

/// Describes the step's settings that a cluster ignores; empty if there are none.
std::string unhonoured(const StepSpec& step);

}  // namespace pipeline::orchestrators::kubernetes
