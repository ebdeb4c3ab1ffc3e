#include "orchestrators/kubernetes/manifest.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "core/diagnostic.hpp"
#include "core/digest.hpp"
#include "orchestrators/docker/container_spec.hpp"
#include "orchestrators/kubernetes/affinity.hpp"
#include "settings/accelerator.hpp"

namespace pipeline {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* gpu_resource = "nvidia.com/gpu";
constexpr const char *agent_path = "/pipe/agent", *agent_file = "agent", *agent_folder = "/install";
constexpr int grace_seconds = 10;
constexpr auto kept_after_end = std::chrono::hours(24);   // where the driver is gone: it removes them itself
constexpr auto beyond_timeout = std::chrono::minutes(5);  // likewise: the timeout is the engine's

bool is_alphanumeric(char c) { return static_cast<unsigned char>(c) < 0x80 && std::isalnum(static_cast<unsigned char>(c)); }

/// Letters, digits, `-`, `_` and `.`, the first and last a letter or digit, at most 63: what is none is made one, and told apart by a digest.
std::string label_value(const std::string& text) {
  constexpr std::size_t longest = 63, digest_length = 10;
  const auto is_fit = [](char c) { return is_alphanumeric(c) || c == '-' || c == '_' || c == '.'; };
  const bool ends_well = text.empty() || (is_alphanumeric(text.front()) && is_alphanumeric(text.back()));
  if (text.size() <= longest && ends_well && std::all_of(text.begin(), text.end(), is_fit)) return text;
  std::string value;
  for (const char c : text.substr(0, longest - digest_length - 2)) value += is_fit(c) ? c : '-';
  return (is_alphanumeric(value.front()) ? "" : "x") + value + "-" + sha256(text).hex().substr(0, digest_length);
}

/// Kubernetes replaces `$(NAME)` in arguments and values, and `$$` by `$`.
std::string literally(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '$') result += '$';
    result += c;
  }
  return result;
}

json environment(const Attempt& attempt, const Layout& layout) {
  auto variables = variables_of(attempt, layout);
  const auto& image = attempt.step.settings.docker.environment;
  for (const auto& [name, value] :
       {std::pair("HOME", layout.scratch.c_str()), std::pair("TMPDIR", layout.scratch.c_str()), std::pair("PYTHONDONTWRITEBYTECODE", "1")})
    if (!image.contains(name)) variables.try_emplace(name, value);
  // Images of NVIDIA's ask for all GPUs of the node that they come to.
  if (!gpu_request(attempt.step.settings.resources).wanted()) variables.insert_or_assign("NVIDIA_VISIBLE_DEVICES", "void");
  json list = json::array();
  for (const auto& [name, value] : variables) {
    if (attempt.secrets.contains(name))
      list.push_back({{"name", name}, {"valueFrom", {{"secretKeyRef", {{"name", job_name(attempt)}, {"key", name}}}}}});
    else
      list.push_back({{"name", name}, {"value", literally(value)}});
  }
  return list;
}

/// Files of this machine, which the nodes see under the same paths, and memory.
class Volumes {
 public:
  void add(const fs::path& source, bool is_folder, const std::string& target, bool read_only) {
    const auto name = "files-" + std::to_string(volumes.size());
    volumes.push_back({{"name", name}, {"hostPath", {{"path", source.string()}, {"type", is_folder ? "Directory" : "File"}}}});
    mounts.push_back({{"name", name}, {"mountPath", target}, {"readOnly", read_only}});
  }
  void add_memory(const std::string& target, std::optional<Bytes> size) {
    json medium{{"medium", "Memory"}};
    if (size) medium["sizeLimit"] = std::to_string(*size);
    volumes.push_back({{"name", "memory"}, {"emptyDir", std::move(medium)}});
    mounts.push_back({{"name", "memory"}, {"mountPath", target}});
  }
  /// What the container `agent` leaves, see agent_bringer(). A file by itself: the image may have others in its folder.
  void add_agent() {
    volumes.push_back({{"name", agent_container}, {"emptyDir", json::object()}});
    mounts.push_back({{"name", agent_container}, {"mountPath", agent_path}, {"subPath", agent_file}, {"readOnly", true}});
  }
  json volumes = json::array(), mounts = json::array();
};

unsigned gpu_count(const StepSpec& step) {
  const auto request = gpu_request(step.settings.resources);
  const auto refuse = [&](const std::string& what, const std::string& suggestion) {
    return InputError("step '" + step.name + "' " + what + ", and a cluster gives GPUs by number: it chooses which, and on which node", suggestion);
  };
  switch (request.selection) {
    case GpuRequest::Selection::none: return 0;
    case GpuRequest::Selection::count:
    case GpuRequest::Selection::first: return request.count;
    case GpuRequest::Selection::devices:
      throw refuse("names its GPUs", "ask for a number of them: `gpu_count: " + std::to_string(request.devices.size()) + "`");
    case GpuRequest::Selection::all: break;
  }
  if (request.if_present) return 0;
  throw refuse("asks for all GPUs of its machine", "say how many: `gpu_count: 1`");
}

/// Requests equal limits: a node that takes the step has all that it was promised.
json resources(const StepSpec& step) {
  const auto& asked = step.settings.resources;
  json limits = json::object();
  if (asked.cpu_count) limits["cpu"] = std::to_string(std::llround(*asked.cpu_count * 1000)) + "m";
  if (asked.memory) limits["memory"] = std::to_string(*asked.memory);
  if (const auto gpus = gpu_count(step); gpus > 0) limits[gpu_resource] = std::to_string(gpus);
  if (limits.empty()) return limits;
  return {{"limits", limits}, {"requests", limits}};
}

/// `UID` or `UID:GID`; a name means something in the image only.
json security(const StepSpec& step, const std::string& caller) {
  const auto& text = step.settings.docker.user ? *step.settings.docker.user : caller;
  json context{{"allowPrivilegeEscalation", false}};
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
    throw InputError("step '" + step.name + "': `docker.user: " + text + "`: a cluster takes users by number",
                     "write `user: UID:GID`, with the numbers that the image has for it");
  return context;
}

/// Copies the agent from its image to where the step's container finds it. It asks for what the step asks for: that adds nothing to the pod, whose
/// containers come later, and its quality of service stays that of the step.
json agent_bringer(const std::string& image, const json& step) {
  json container{{"name", agent_container},
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

json node_affinity(const std::vector<gpu::NodeTerm>& terms) {
  json list = json::array();
  for (const auto& term : terms) {
    json expressions = json::array();
    for (const auto& requirement : term) {
      json one{{"key", requirement.key}, {"operator", requirement.op}};
      if (!requirement.values.empty()) one["values"] = requirement.values;
      expressions.push_back(std::move(one));
    }
    list.push_back({{"matchExpressions", std::move(expressions)}});
  }
  return {{"nodeAffinity", {{"requiredDuringSchedulingIgnoredDuringExecution", {{"nodeSelectorTerms", std::move(list)}}}}}};
}

}  // namespace

std::string job_name(const std::string& run_id, const std::string& step_name, unsigned number) {
  constexpr std::size_t longest = 30;  // 63 for the pod's name, less our prefix, the digest and the Job controller's suffix
  std::string step;
  for (const char c : step_name.substr(0, longest)) step += is_alphanumeric(c) ? static_cast<char>(std::tolower(c)) : '-';
  Hasher hasher;
  hasher.field(run_id).field(step_name).field(std::to_string(number));
  return "pipe-" + step + "-" + hasher.finish().hex().substr(0, 16);
}

StringMap job_labels(const Attempt& attempt, const std::string& owner) {
  return {{"app.kubernetes.io/managed-by", "pipe"},         {"pipe.run", label_value(attempt.run_id)},
          {"pipe.step", label_value(attempt.step.name)},    {"pipe.attempt", std::to_string(attempt.number)},
          {"pipe.pipeline", label_value(attempt.pipeline)}, {"pipe.state", owner}};
}

std::string run_selector(const std::string& run_id, const std::string& owner) { return "pipe.run=" + label_value(run_id) + ",pipe.state=" + owner; }

json job_manifest(const Attempt& attempt, const ClusterPlace& place) {
  const auto& step = attempt.step;
  const auto gpus = gpu_count(step);
  auto layout = container_layout();
  layout.program = place.program;
  Volumes volumes;
  volumes.add(attempt.code, true, layout.code, true);
  std::error_code error;
  for (const auto& input : attempt.inputs) volumes.add(input.path, fs::is_directory(input.path, error), path_of(input, layout), true);
  volumes.add(attempt.outputs, true, layout.outputs, false);
  volumes.add(attempt.scratch, true, layout.scratch, false);
  if (place.agent_image.empty())
    volumes.add(place.agent, false, agent_path, true);
  else
    volumes.add_agent();
  // A node gives 64 MiB, in which the first data loader with workers ends with SIGBUS.
  if (step.settings.resources.shm_size || gpus > 0) volumes.add_memory("/dev/shm", step.settings.resources.shm_size);

  json command = json::array({agent_path, layout.scratch + "/" + std::string(stop_file_name)});
  for (const auto& word : command_of(attempt, layout)) command.push_back(literally(word));
  json container{{"name", step_container},
                 {"image", place.image},
                 {"imagePullPolicy", place.pull ? "IfNotPresent" : "Never"},
                 {"command", std::move(command)},
                 {"workingDir", layout.code},
                 {"env", environment(attempt, layout)},
                 {"volumeMounts", volumes.mounts},
                 {"securityContext", security(step, place.user)}};
  if (auto asked = resources(step); !asked.empty()) container["resources"] = std::move(asked);

  json pod{{"restartPolicy", "Never"},
           {"containers", json::array({std::move(container)})},
           {"volumes", volumes.volumes},
           {"terminationGracePeriodSeconds", grace_seconds},
           {"automountServiceAccountToken", false},
           {"enableServiceLinks", false}};
  if (!place.agent_image.empty()) pod["initContainers"].push_back(agent_bringer(place.agent_image, pod["containers"][0]));
  if (gpus > 0) pod["tolerations"].push_back({{"key", gpu_resource}, {"operator", "Exists"}});
  if (const auto terms = node_terms(step); !terms.empty()) pod["affinity"] = node_affinity(terms);

  const auto labels = job_labels(attempt, place.owner);
  json spec{{"backoffLimit", 0},
            {"podReplacementPolicy", "Failed"},  // servers before 1.28 do not know it, and pass over it
            {"completions", 1},
            {"parallelism", 1},
            {"ttlSecondsAfterFinished", std::chrono::seconds(kept_after_end).count()},
            {"template", {{"metadata", {{"labels", labels}}}, {"spec", std::move(pod)}}}};
  if (step.timeout) spec["activeDeadlineSeconds"] = std::chrono::ceil<std::chrono::seconds>(*step.timeout + beyond_timeout).count();
  return {{"apiVersion", "batch/v1"}, {"kind", "Job"}, {"metadata", {{"name", job_name(attempt)}, {"labels", labels}}}, {"spec", std::move(spec)}};
}

std::optional<json> secret_manifest(const Attempt& attempt, const std::string& owner) {
  if (attempt.secrets.empty()) return std::nullopt;
  return json{{"apiVersion", "v1"},
              {"kind", "Secret"},
              {"metadata", {{"name", job_name(attempt)}, {"labels", job_labels(attempt, owner)}}},
              {"stringData", attempt.secrets}};
}

std::string unhonoured(const StepSpec& step) {
  const auto& docker = step.settings.docker;
  std::string names;
  for (const auto& [name, given] : {std::pair("volumes", !docker.volumes.items().empty()), std::pair("network", docker.network.has_value()),
                                    std::pair("labels", !docker.labels.empty()), std::pair("run_args", !docker.run_args.empty())})
    if (given) names += (names.empty() ? "`docker." : ", `docker.") + std::string(name) + "`";
  return names;
}

}  // namespace pipeline
