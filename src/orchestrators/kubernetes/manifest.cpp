#include "orchestrators/kubernetes/manifest.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "core/diagnostic.hpp"
#include "core/digest.hpp"
#include "core/joined.hpp"
#include "core/quantity.hpp"
#include "kubernetes_api/json.hpp"
#include "orchestrators/containers/container_layout.hpp"
#include "orchestrators/kubernetes/gang_job.hpp"
#include "orchestrators/kubernetes/kueue.hpp"
#include "orchestrators/kubernetes/merge.hpp"
#include "orchestrators/kubernetes/pod_files.hpp"
#include "orchestrators/kubernetes/pod_resources.hpp"
#include "orchestrators/kubernetes/pod_services.hpp"
#include "orchestrators/kubernetes/short_forms.hpp"
#include "orchestrators/nodes.hpp"
#include "settings/platform.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr const char *agent_path = "/pipe/agent", *agent_file = "agent", *agent_folder = "/install";
constexpr unsigned pod_grace_seconds = 10, upload_grace_seconds = 50;
constexpr std::chrono::seconds kept_after_end =
    std::chrono::hours(24);  // Applies if the driver is dead; otherwise it removes Jobs itself.
// Parts of a pod's deadline besides the step's timeout and its startup timeout. The deadline
// applies if the driver is dead; otherwise the engine enforces the timeout.
constexpr std::chrono::hours time_to_move{1}, time_to_stage{24};

constexpr std::chrono::hours shell_timeout{24};

/// The variable with a pod's index, which Indexed Jobs set. A container's list has it as well,
/// because a value can refer only to variables that precede it in the list.
constexpr const char *index_variable = "JOB_COMPLETION_INDEX",
                     *index_field =
                         "metadata.annotations['batch.kubernetes.io/job-completion-index']";

}  // namespace

void restrict_privileges(json& context) {
  if (context.value("privileged", json(false)) == true) return;
  const auto set = [&](const char* key, json value) {
    if (!context.contains(key)) context[key] = std::move(value);
  };
  set("allowPrivilegeEscalation", false);
  set("seccompProfile", {{"type", "RuntimeDefault"}});
  // A root user's programs need capabilities, and restricted namespaces admit no root user at all.
  const bool is_root = context.value("runAsUser", json(0)) == 0;
  set("capabilities", {{"drop", is_root ? json{"MKNOD", "SETFCAP"} : json{"ALL"}}});
  if (!is_root) set("runAsNonRoot", true);
}

/// Kubernetes replaces `$(NAME)` in arguments and values, and `$$` by `$`.
std::string escape_references(const std::string& text) {
  constexpr std::string_view mark = node_mark;
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (std::string_view(text).substr(at).starts_with(mark)) {
      result += "$(" + std::string(index_variable) + ")";
      at += mark.size() - 1;
      continue;
    }
    if (text[at] == '$') result += '$';
    result += text[at];
  }
  return result;
}

namespace {

json environment(const AttemptSpec& attempt, const JobOptions& options, const Layout& layout) {
  auto variables = variables_of(attempt, layout);
  std::size_t gpus = 0;
  for (const auto& [name, amount] : gpus_on_cluster(attempt.step))
    gpus += std::strtoul(amount.c_str(), nullptr, 10);
  containers::add_defaults(variables, attempt, gpus);
  // Without this variable, images of NVIDIA get all GPUs of their node.
  if (gpus == 0)
    variables.insert_or_assign("NVIDIA_VISIBLE_DEVICES", "void");
  else if (const auto request = settings::gpu_request(attempt.step.settings->resources);
           !request.capabilities.empty())
    variables.try_emplace("NVIDIA_DRIVER_CAPABILITIES", core::joined(request.capabilities, ","));
  json list = json::array();
  if (options.gang_job)
    list.push_back(
        {{"name", index_variable}, {"valueFrom", {{"fieldRef", {{"fieldPath", index_field}}}}}});
  const auto& given = *attempt.step.settings->kubernetes.env;
  for (const auto& each : given) {
    list.push_back(env_of(each));
    variables.erase(list.back().value("name", ""));
  }
  for (const auto& [name, value] : variables) {
    if (attempt.secrets.contains(name))
      list.push_back(
          {{"name", name},
           {"valueFrom", {{"secretKeyRef", {{"name", job_name(attempt)}, {"key", name}}}}}});
    else
      list.push_back({{"name", name}, {"value", escape_references(value)}});
  }
  return list;
}

/// Returns the container's securityContext. Accepts `UID` or `UID:GID` as the user; a cluster
/// cannot know the names that an image gives to users.
json security(const StepSpec& step, const std::string& caller) {
  const auto& text = step.settings->docker.user ? *step.settings->docker.user : caller;
  json context = json::object();
  long long uid = 0, gid = 0;
  const char *end = text.data() + text.size(), *begin = text.data();
  const auto first = std::from_chars(begin, end, uid);
  bool good = first.ec == std::errc();
  context["runAsUser"] = uid;
  if (good && first.ptr != end) {
    const auto second = std::from_chars(std::min(first.ptr + 1, end), end, gid);
    good = *first.ptr == ':' && second.ec == std::errc() && second.ptr == end;
    context["runAsGroup"] = gid;
  }
  if (!good)
    throw core::InputError(
        "step '" + step.name + "': `docker.user: " + text + "`: a cluster takes users by number",
        "write `user: UID:GID`, with the numbers that the image has for it");
  for (const auto& [key, value] : step.settings->kubernetes.container_security_context)
    context[key] = *value;
  restrict_privileges(context);
  return context;
}

/// Returns a container that copies the agent from its image to a folder that the step's container
/// sees. The container requests the same resources as the step: init containers run before the
/// others, so this does not increase the pod's request, and the pod's quality of service stays that
/// of the step.
json agent_init_container(const std::string& image, const json& step) {
  json container{
      {"name", agent_container},
      {"image", image},
      {"imagePullPolicy", "IfNotPresent"},
      {"command", {agent_in_image, "install", std::string(agent_folder) + "/" + agent_file}},
      {"volumeMounts", json::array({json{{"name", agent_container}, {"mountPath", agent_folder}}})},
      {"securityContext", step["securityContext"]}};
  if (!step.contains("resources")) return container;
  for (const auto& [kind, amounts] : step["resources"].items())
    for (const char* name : {"cpu", "memory"})
      if (amounts.contains(name)) container["resources"][kind][name] = amounts[name];
  return container;
}

// Folders and names of a pod with staged files. Keys of its Secret contain a dot, which no
// variable's name has.
constexpr const char *programs_folder = "/pipe/bin", *fetch_folder = "/pipe/fetch",
                     *collect_folder = "/pipe/collect", *cache_folder = "/pipe/cache";
constexpr const char *fetch_key = "pipe.fetch", *collect_key = "pipe.collect",
                     *document = "/document";

/// Mounts the downloaded files read-only for the step, without their URLs, and for the agent the
/// document by which the outputs are uploaded once the step has ended.
void add_staged(PodFiles& files, const std::string& secret, const Layout& layout,
                bool has_checkpoint) {
  files.add_empty("programs", programs_folder, true);
  files.add_empty("code", layout.code, true);
  files.add_empty("inputs", layout.inputs, true);
  files.add_empty("outputs", layout.outputs, false);
  files.add_empty("scratch", layout.scratch, false);
  if (has_checkpoint) files.add_empty("checkpoint", layout.checkpoint, false);
  files.add_secret("collect", secret, collect_key, collect_folder);
}

/// Mounts files of this machine, which the nodes see directly or through a claim.
void add_shared(PodFiles& files, const AttemptSpec& attempt, const JobOptions& options,
                const Layout& layout) {
  files.add(attempt.code, true, layout.code, true);
  std::error_code error;
  for (const auto& input : attempt.inputs)
    files.add(input.path, fs::is_directory(input.path, error), path_of(input, layout), true);
  if (options.gang_job) {
    const auto work = attempt.outputs.parent_path();
    for (const auto& [name, target] :
         {std::pair(outputs_of_node, layout.outputs), std::pair(scratch_of_node, layout.scratch)})
      files.add_part(work, escape_references(folder_of_node(node_mark, name)), target);
  } else {
    files.add(attempt.outputs, true, layout.outputs, false);
    files.add(attempt.scratch, true, layout.scratch, false);
  }
  if (!attempt.checkpoint.empty()) files.add(attempt.checkpoint, true, layout.checkpoint, false);
  if (options.agent_image.empty())
    files.add(options.agent, false, agent_path, true);
  else
    files.add_installed(agent_container, agent_file, agent_path);
}

/// Makes the agent's init container download the files, too. Only this container sees the node's
/// cache.
void add_download(json& pod, const AttemptSpec& attempt, const JobOptions& options,
                  const Layout& layout) {
  auto& container = pod["initContainers"][0];
  container["command"] = json::array(
      {stager_in_image, "fetch", std::string(fetch_folder) + document, programs_folder});
  PodFiles files;
  files.add_empty("programs", programs_folder, false);
  files.add_empty("code", layout.code, false);
  files.add_empty("inputs", layout.inputs, false);
  if (sends_checkpoint(attempt, options)) files.add_empty("checkpoint", layout.checkpoint, false);
  const auto shared = files.volumes.size();
  files.add_secret("fetch", job_name(attempt), fetch_key, fetch_folder);
  if (!options.node_cache.path.empty()) {
    files.add_node_cache(options.node_cache, cache_folder);
    container["command"].push_back(cache_folder);
    container["command"].push_back(options.node_cache.budget);
  }
  for (auto i = shared; i < files.volumes.size(); ++i) pod["volumes"].push_back(files.volumes[i]);
  container["volumeMounts"] = files.mounts;
}

/// Fields that pipe relies on: an attempt is one pod of one Job, found by its name and labels.
constexpr std::array relied_on{"/metadata/name",
                               "/metadata/namespace",
                               "/spec/backoffLimit",
                               "/spec/completions",
                               "/spec/completionMode",
                               "/spec/parallelism",
                               "/spec/template/spec/restartPolicy",
                               "/spec/template/spec/containers/0/name",
                               "/spec/template/spec/containers/0/command"};

/// Labels are added to these after the patches, so they must be maps.
constexpr std::array labelled{"/metadata", "/metadata/labels", "/spec/template/metadata",
                              "/spec/template/metadata/labels"};

std::string field_of(const char* pointer) {
  std::string field(pointer + 1);
  std::replace(field.begin(), field.end(), '/', '.');
  return field;
}

void patch_job(json& job, const StepSpec& step, const StringMap& labels) {
  const auto& settings = step.settings->kubernetes;
  json patch = json::object();
  for (const auto& [key, value] : settings.additional_pod_spec_args)
    patch["spec"]["template"]["spec"][key] = *value;
  const json before = job;
  merge_patch(job, patch);
  json last = json::object();
  for (const auto& [key, value] : settings.job_patch) last[key] = *value;
  merge_patch(job, last);
  for (const auto* pointer : relied_on) {
    if (kubernetes_api::at(job, pointer) == kubernetes_api::at(before, pointer)) continue;
    throw core::InputError(
        "step '" + step.name + "': `kubernetes.job_patch` or `additional_pod_spec_args` changes " +
            field_of(pointer) + ", which pipe relies on",
        std::string(pointer) == "/spec/backoffLimit" ? "`retry:` repeats failed attempts" : "");
  }
  for (const auto* pointer : labelled) {
    const auto& made = kubernetes_api::at(job, pointer);
    if (!made.is_null() && !made.is_object())
      throw core::InputError("step '" + step.name + "': `kubernetes.job_patch` makes " +
                             field_of(pointer) + ", which must be a map, " +
                             made.dump(-1, ' ', false, json::error_handler_t::replace));
  }
  for (const auto& [name, value] : labels)
    job["metadata"]["labels"][name] = job["spec"]["template"]["metadata"]["labels"][name] = value;
}

/// Makes the container run a shell, whose input is the user's terminal or pipe and can end. The
/// agent makes the terminal in the pod, because the input of a container's own terminal cannot end.
void make_shell(json& container, const ShellRequest& shell) {
  const std::string agent = container["command"][0];
  container["command"] =
      json::array({agent, "shell", shell.has_terminal ? "--terminal" : "--pipes"});
  for (const auto& word : shell.words) container["command"].push_back(escape_references(word));
  container["stdin"] = container["stdinOnce"] = true;
}

bool has_services(const AttemptSpec& attempt) {
  return !attempt.step.services.empty() && !attempt.shell;
}

PodFiles pod_files(const AttemptSpec& attempt, const JobOptions& options, const Layout& layout) {
  const auto& step = attempt.step;
  PodFiles files(options.claim);
  if (options.has_stager)
    add_staged(files, job_name(attempt), layout, !attempt.checkpoint.empty());
  else
    add_shared(files, attempt, options, layout);
  // A node's default is 64 MiB, with which a data loader with workers ends with SIGBUS.
  if (const auto& size = step.settings->resources.shm_size; size || !gpus_on_cluster(step).empty())
    files.add_memory("/dev/shm", size);
  if (has_services(attempt)) files.add_empty("services", services_folder, false);
  files.add(step.settings->kubernetes);
  return files;
}

std::string agent_of(const JobOptions& options) {
  return options.has_stager ? std::string(programs_folder) + "/agent" : agent_path;
}

json container_spec(const AttemptSpec& attempt, const JobOptions& options, const Layout& layout,
                    const PodFiles& files) {
  const auto& step = attempt.step;
  json command =
      json::array({agent_of(options), "--log", layout.scratch + "/" + std::string(kept_log_name)});
  if (options.has_stager)
    command = {agent_of(options), "--collect", std::string(programs_folder) + "/stager",
               std::string(collect_folder) + document};
  if (has_services(attempt))
    for (const auto& word : {std::string("--services"), std::string(services_folder),
                             std::to_string(step.services.size())})
      command.push_back(word);
  if (sends_checkpoint(attempt, options)) command.push_back("--checkpoint");
  if (!gpus_on_cluster(step).empty()) command.push_back("--gpus");
  if (step.stalled_after && !attempt.shell) {
    command.push_back("--stalled-after");
    command.push_back(std::to_string(step.stalled_after->count()));
    if (attempt.process) command.push_back("--progress");
  }
  command.push_back(layout.scratch + "/" + std::string(stop_file_name));
  if (attempt.process)
    for (const auto& word : agent_words(attempt, agent_of(options)))
      command.push_back(escape_references(word));
  for (const auto& word : command_of(attempt, layout)) command.push_back(escape_references(word));
  json container{{"name", step_container},
                 {"image", options.image},
                 {"imagePullPolicy", options.pull ? "IfNotPresent" : "Never"},
                 {"command", std::move(command)},
                 {"workingDir", layout.code},
                 {"env", environment(attempt, options, layout)},
                 {"volumeMounts", files.mounts},
                 {"securityContext", security(step, options.user)}};
  if (auto resources = pod_resources(step); !resources.empty())
    container["resources"] = std::move(resources);
  for (const auto& given : *step.settings->kubernetes.env_from)
    container["envFrom"].push_back(env_from_of(given));
  if (attempt.shell) make_shell(container, *attempt.shell);
  if (attempt.process) container["stdin"] = true;  // tell_addresses() writes to it.
  return container;
}

/// Returns the labels that a node has to have. An image of a named platform executes only on nodes
/// of that architecture, and clusters may mix them.
StringMap node_labels(const Settings& settings) {
  auto labels = settings.kubernetes.node_selectors;
  if (auto architecture = settings::architecture_of(settings.docker.platform.value_or(""));
      !architecture.empty())
    labels.try_emplace("kubernetes.io/arch", std::move(architecture));
  return labels;
}

json pod_spec(const AttemptSpec& attempt, const JobOptions& options) {
  const auto& step = attempt.step;
  const auto& settings = step.settings->kubernetes;
  auto layout = containers::container_layout();
  layout.program = options.program;
  const auto files = pod_files(attempt, options, layout);
  json pod{{"restartPolicy", "Never"},
           {"containers", json::array({container_spec(attempt, options, layout, files)})},
           {"volumes", files.volumes},
           {"terminationGracePeriodSeconds", grace_seconds(attempt, options)},
           {"automountServiceAccountToken", settings.service_account_name.has_value()},
           {"enableServiceLinks", false}};
  if (has_services(attempt))
    add_services(pod, attempt, {agent_of(options), files, options.services, options.pull});
  // A Job's own deadline would count the time in which it waits for a node.
  if (step.timeout && !attempt.shell)
    pod["activeDeadlineSeconds"] =
        std::chrono::ceil<std::chrono::seconds>(std::chrono::milliseconds(*step.timeout) +
                                                startup_timeout(step) +
                                                (options.has_stager ? time_to_stage : time_to_move))
            .count();
  if (!options.agent_image.empty()) {
    pod["initContainers"].push_back(
        agent_init_container(options.agent_image, pod["containers"][0]));
    if (options.has_stager) add_download(pod, attempt, options, layout);
  }
  if (auto tolerations = pod_tolerations(step); !tolerations.empty())
    pod["tolerations"] = std::move(tolerations);
  if (auto affinity =
          pod_affinity(step, options.gpu_models, attempt.avoided_nodes, options.preferred_nodes);
      !affinity.is_null())
    pod["affinity"] = std::move(affinity);
  if (auto labels = node_labels(*step.settings); !labels.empty()) pod["nodeSelector"] = labels;
  for (const auto& name : settings.image_pull_secrets.items())
    pod["imagePullSecrets"].push_back({{"name", name}});
  for (const auto& [key, value] : settings.pod_security_context)
    pod["securityContext"][key] = *value;
  if (settings.host_ipc.value_or(false)) pod["hostIPC"] = true;
  for (const auto& [key, value] : {std::pair("serviceAccountName", &settings.service_account_name),
                                   std::pair("priorityClassName", &settings.priority_class_name),
                                   std::pair("runtimeClassName", &settings.runtime_class_name),
                                   std::pair("schedulerName", &settings.scheduler_name)})
    if (*value) pod[key] = **value;
  return pod;
}

}  // namespace

std::string too_large(const std::string& kind, std::size_t bytes) {
  return "its " + kind + " would take " + core::format_bytes(bytes) +
         ", and a cluster stores no object of more than " + core::format_bytes(max_object_bytes);
}

bool sends_checkpoint(const AttemptSpec& attempt, const JobOptions& options) {
  return options.has_stager && !attempt.checkpoint_key.empty();
}

std::chrono::seconds startup_timeout(const StepSpec& step) {
  return std::chrono::ceil<std::chrono::seconds>(std::chrono::milliseconds(
      step.settings->kubernetes.pod_startup_timeout.value_or(std::chrono::minutes(10))));
}

unsigned grace_seconds(const AttemptSpec& attempt, const JobOptions& options) {
  return pod_grace_seconds + (sends_checkpoint(attempt, options) ? upload_grace_seconds : 0);
}

json job_manifest(const AttemptSpec& attempt, const JobOptions& options) {
  const auto& step = attempt.step;
  const auto& settings = step.settings->kubernetes;
  const auto own_labels = job_labels(attempt, options.owner);
  json metadata{{"labels", settings.labels}};
  for (const auto& [name, value] : own_labels) metadata["labels"][name] = value;
  if (!settings.annotations.empty()) metadata["annotations"] = settings.annotations;
  json spec{{"backoffLimit", 0},
            {"podReplacementPolicy", "Failed"},  // Servers before 1.28 ignore it.
            {"completions", 1},
            {"parallelism", 1},
            {"ttlSecondsAfterFinished",
             settings.ttl_seconds_after_finished.value_or(kept_after_end.count())},
            {"template", {{"metadata", metadata}, {"spec", pod_spec(attempt, options)}}}};
  if (settings.active_deadline_seconds)
    spec["activeDeadlineSeconds"] = *settings.active_deadline_seconds;
  if (attempt.shell) {  // Applies if this process is killed.
    spec["activeDeadlineSeconds"] = std::chrono::seconds(shell_timeout).count();
    spec["ttlSecondsAfterFinished"] = 0;
  }
  if (options.gang_job) make_indexed(spec, attempt, *options.gang_job);
  add_topology(spec["template"]["metadata"], step);
  metadata["name"] = job_name(attempt);
  if (settings.queue_name) {
    metadata["labels"]["kueue.x-k8s.io/queue-name"] = *settings.queue_name;
    spec["suspend"] = true;  // Kueue resumes it when there is capacity.
  }
  json job{{"apiVersion", "batch/v1"},
           {"kind", "Job"},
           {"metadata", std::move(metadata)},
           {"spec", std::move(spec)}};
  patch_job(job, step, own_labels);
  return job;
}

std::optional<json> secret_manifest(const AttemptSpec& attempt, const std::string& owner,
                                    const std::optional<StagedFiles>& staged) {
  if (attempt.secrets.empty() && !staged) return std::nullopt;
  auto texts = attempt.secrets;
  if (staged) {
    texts[fetch_key] = staged->fetch;
    texts[collect_key] = staged->collect;
  }
  return json{{"apiVersion", "v1"},
              {"kind", "Secret"},
              {"metadata", {{"name", job_name(attempt)}, {"labels", job_labels(attempt, owner)}}},
              {"stringData", std::move(texts)}};
}

std::string unhonoured(const StepSpec& step) {
  const auto& docker = step.settings->docker;
  const auto& resources = step.settings->resources;
  const auto request = settings::gpu_request(resources);
  std::string names;
  for (const auto& [name, given] :
       {std::pair("docker.volumes", !docker.volumes.items().empty()),
        std::pair("docker.network", docker.network.has_value()),
        std::pair("docker.labels", !docker.labels.empty()),
        std::pair("docker.run_args", !docker.run_args.empty()),
        std::pair("resources.auto_select_gpus", request.auto_select),
        std::pair("resources.gpus` with `driver` or `options",
                  !request.driver.empty() || !request.options.empty()),
        std::pair("resources.preflight", resources.preflight == Preflight::on)})
    if (given) names += (names.empty() ? "`" : ", `") + std::string(name) + "`";
  return names;
}

}  // namespace pipeline::orchestrators::kubernetes
