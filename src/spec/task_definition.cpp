#include "spec/task_definition.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "settings/decode.hpp"
#include "spec/task_keys.hpp"
#include "spec/value_builder.hpp"

namespace pipeline::spec {
namespace {

using Kind = Value::Kind;

constexpr std::int64_t most_mebibytes = std::int64_t{1} << 40;

/// As if the key were not there: what the command line's skeleton writes.
bool is_blank(const Value& value) {
  switch (value.kind) {
    case Kind::null: return true;
    case Kind::scalar: return value.scalar.empty() || (!value.quoted && (value.scalar == "0" || value.scalar == "false"));
    case Kind::list: return value.items.empty();
    case Kind::map: return value.members.empty();
  }
  return true;
}

const Value* given(const Value& map, std::string_view key) {
  const Value* value = map.find(key);
  return value && value->kind != Kind::null ? value : nullptr;
}

/// `${` has a meaning in a pipeline's commands, and none in ECS's.
std::string literal(const std::string& text) {
  std::string escaped;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "${") == 0) escaped += '$';
    escaped += text[i];
  }
  return escaped;
}

class TaskReader {
 public:
  TaskReader(Diagnostics& diagnostics, Diagnostics& notices) : diagnostics_(diagnostics), notices_(notices) {}
  Value read(const Value& task);

 private:
  struct Volume {
    std::string source;  ///< A path or a name; empty: it cannot be had here.
  };

  void check_keys(const Value& map, std::span<const TaskKey> known, const std::string& place);
  void notice(std::string message, Span span) {
    Diagnostic told;
    told.code = "not-honoured";
    told.message = std::move(message);
    told.span = span;
    told.severity = Severity::warning;
    notices_.push_back(std::move(told));
  }
  void wrong(std::string message, Span span, std::vector<std::string> notes = {}) {
    report(diagnostics_, "bad-task", std::move(message), span, std::move(notes));
  }
  std::optional<std::int64_t> whole(const std::string& key, const Value& value, std::int64_t least, std::int64_t most);
  std::vector<const Value*> maps(const std::string& key, const Value& map);
  std::optional<std::string> text(const std::string& key, const Value& map);

  void read_volumes(const Value& task);
  void read_task_limits(const Value& task);
  void read_task_settings(const Value& task, Value& pipeline);
  void read_placement(const Value& task, Value& pipeline);
  void read_container(const Value& container, Value& steps);
  void read_command(const Value& container, Value& step);
  void read_environment(const Value& container, Value& step);
  void read_order(const Value& container, Value& step);
  void read_resources(const Value& container, Value& step);
  void read_mounts(const Value& container, Value& step);
  void read_options(const Value& container, Value& step);
  void read_linux(const Value& linux, Value& step);
  /// Copies a list of maps as texts `A:B`.
  void join(const std::string& key, const Value& from, const char* first, const char* second, const char* argument, Value& step);

  Diagnostics& diagnostics_;
  Diagnostics& notices_;
  std::map<std::string, Volume> volumes_;
  std::string family_, place_;  ///< place_: `container 'x'`, for messages.
  std::optional<double> task_cpus_;
  std::optional<std::int64_t> task_memory_;
  Span task_span_;
  bool told_of_entry_points_ = false;
};

void TaskReader::check_keys(const Value& map, std::span<const TaskKey> known, const std::string& place) {
  std::vector<std::string> names;
  for (const auto& key : known) names.emplace_back(key.name);
  for (const auto& [key, value] : map.members) {
    const auto found = std::find_if(known.begin(), known.end(), [&](const TaskKey& each) { return key.scalar == each.name; });
    if (found == known.end())
      report(diagnostics_, "unknown-key", "unknown key '" + key.scalar + "' in " + place, key.span, {"ECS has no such key there"},
             did_you_mean(key.scalar, names));
    else if (found->notice && !is_blank(value))
      notice("'" + key.scalar + "' of " + place + " is not honoured: " + found->notice, key.span);
  }
}

std::optional<std::int64_t> TaskReader::whole(const std::string& key, const Value& value, std::int64_t least, std::int64_t most) {
  std::int64_t number = 0;
  const auto& digits = value.scalar;
  if (value.kind == Kind::scalar) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error == std::errc() && end == digits.data() + digits.size() && number >= least && number <= most) return number;
  }
  report_type(diagnostics_, key, "a whole number, at least " + std::to_string(least), value);
  return std::nullopt;
}

/// The maps of a list; what is none is reported.
std::vector<const Value*> TaskReader::maps(const std::string& key, const Value& map) {
  std::vector<const Value*> found;
  const Value* list = given(map, key);
  if (!list) return found;
  if (list->kind != Kind::list) report_type(diagnostics_, key, "a list", *list);
  for (const Value& item : list->items) {
    if (item.kind == Kind::map)
      found.push_back(&item);
    else
      report_type(diagnostics_, key, "a list of maps", item);
  }
  return found;
}

std::optional<std::string> TaskReader::text(const std::string& key, const Value& map) {
  const Value* value = given(map, key);
  if (!value) {
    wrong("'" + key + "' is missing here", map.span);
    return std::nullopt;
  }
  return read_text(key, *value, formats::text, diagnostics_);
}

void TaskReader::read_volumes(const Value& task) {
  for (const Value* volume : maps("volumes", task)) {
    check_keys(*volume, volume_keys, "a volume");
    const auto name = text("name", *volume);
    if (!name) continue;
    Volume kept;
    const Value* host = given(*volume, "host");
    const Value* path = host && host->kind == Kind::map ? given(*host, "sourcePath") : nullptr;
    if (path && !is_blank(*path)) {
      kept.source = read_text("sourcePath", *path, formats::path, diagnostics_).value_or("");
    } else if (std::none_of(volume->members.begin(), volume->members.end(), [](const auto& member) {
                 return member.first.scalar.find("olumeConfiguration") != std::string::npos && member.first.scalar != "dockerVolumeConfiguration" &&
                        !is_blank(member.second);
               })) {
      kept.source = family_ + "-" + *name;
      notice("the volume '" + *name + "' is docker's volume '" + kept.source + "' here, which stays when the task has ended", volume->span);
    }
    if (!volumes_.emplace(*name, kept).second) wrong("there are two volumes '" + *name + "'", volume->span);
  }
}

/// `1024`, `"1 vCPU"`; `2048`, `"2 GB"`: what all containers together may use.
void TaskReader::read_task_limits(const Value& task) {
  const auto read = [&](const char* key, std::string_view unit, double factor, const char* expected) -> std::optional<double> {
    const Value* value = given(task, key);
    if (!value || is_blank(*value)) return std::nullopt;
    double number = 0;
    const auto& digits = value->scalar;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    std::string rest;
    for (const char c : std::string_view(end, static_cast<std::size_t>(digits.data() + digits.size() - end)))
      if (c != ' ') rest += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (value->kind == Kind::scalar && error == std::errc() && number > 0 && std::isfinite(number) && number < 1e12 && (rest.empty() || rest == unit))
      return rest.empty() ? number : number * factor;
    report_type(diagnostics_, key, expected, *value);
    return std::nullopt;
  };
  if (const auto units = read("cpu", "vcpu", 1024, "CPU units such as `1024`, or `\"1 vCPU\"`")) task_cpus_ = *units / 1024;
  if (const auto mebibytes = read("memory", "gb", 1024, "MiB such as `2048`, or `\"2 GB\"`")) task_memory_ = static_cast<std::int64_t>(*mebibytes);
}

void TaskReader::read_task_settings(const Value& task, Value& pipeline) {
  const Span span = task.span;
  set_in(pipeline, {"settings", "docker", "skip_build"}, plain_value("true", span));
  if (const Value* mode = given(task, "networkMode"); mode && !is_blank(*mode)) {
    if (mode->scalar == "bridge" || mode->scalar == "host" || mode->scalar == "none")
      set_in(pipeline, {"settings", "docker", "network"}, text_value(mode->scalar, mode->span));
    else if (mode->scalar == "awsvpc")
      notice("'networkMode' awsvpc has no counterpart: containers are on the engine's bridge, and reach each other by no name", mode->span);
    else
      report_type(diagnostics_, "networkMode", "bridge, host, awsvpc or none", *mode);
  }
  for (const auto& [key, argument] : {std::pair("ipcMode", "ipc_mode"), std::pair("pidMode", "pid_mode")}) {
    const Value* mode = given(task, key);
    if (!mode || is_blank(*mode)) continue;
    if (mode->scalar == "host")
      set_in(pipeline, {"settings", "docker", "run_args", argument}, text_value("host", mode->span));
    else
      notice(std::string("'") + key + "' " + mode->scalar + " is not honoured: each container has its own", mode->span);
  }
  if (const Value* platform = given(task, "runtimePlatform"); platform && platform->kind == Kind::map) {
    check_keys(*platform, platform_keys, "'runtimePlatform'");
    const Value* system = given(*platform, "operatingSystemFamily");
    if (system && system->scalar != "LINUX") wrong("'" + system->scalar + "' containers cannot be run: only LINUX", system->span);
    if (const Value* kind = given(*platform, "cpuArchitecture")) {
      if (kind->scalar == "X86_64" || kind->scalar == "ARM64")
        set_in(pipeline, {"settings", "docker", "platform"}, text_value(kind->scalar == "ARM64" ? "linux/arm64" : "linux/amd64", kind->span));
      else
        report_type(diagnostics_, "cpuArchitecture", "X86_64 or ARM64", *kind);
    }
  }
  read_placement(task, pipeline);
}

void TaskReader::read_placement(const Value& task, Value& pipeline) {
  Value expressions = empty_value(Kind::list, task.span);
  for (const Value* constraint : maps("placementConstraints", task)) {
    check_keys(*constraint, constraint_keys, "a placement constraint");
    const Value* type = given(*constraint, "type");
    if (type && type->scalar == "distinctInstance") {
      notice("the placement constraint distinctInstance is not honoured: there is one host", constraint->span);
    } else if (!type || type->scalar != "memberOf") {
      wrong("a placement constraint has 'type' memberOf or distinctInstance", type ? type->span : constraint->span);
    } else if (const auto expression = text("expression", *constraint)) {
      expressions.items.push_back(text_value(*expression, given(*constraint, "expression")->span));
    }
  }
  if (!expressions.items.empty()) set_in(pipeline, {"settings", "resources", "placement_constraints"}, std::move(expressions));
}

/// ECS puts `entryPoint` before `command`; a working directory is gone to by a shell, the words handed on as they are.
void TaskReader::read_command(const Value& container, Value& step) {
  Value command = empty_value(Kind::list, container.span);
  for (const char* key : {"entryPoint", "command"})
    if (const Value* words = given(container, key))
      if (const auto texts = read_texts(key, *words, formats::text, diagnostics_); texts && texts->size() == words->items.size())
        for (std::size_t i = 0; i < texts->size(); ++i) command.items.push_back(text_value(literal((*texts)[i]), words->items[i].span));
  const Value* words = given(container, "command");
  const Value* entry = given(container, "entryPoint");
  if ((!words || words->items.empty()) && (!entry || entry->items.empty()))
    wrong(place_ + " has no command", container.span,
          {"the image's own is not known before it is there: write it under 'entryPoint' or 'command' (`docker image inspect` shows it)"});
  else if ((!entry || entry->items.empty()) && !std::exchange(told_of_entry_points_, true))
    notice("'command' of " + place_ + " is run as it stands: if the image has an entry point, write it under 'entryPoint'", words->span);
  if (const Value* folder = given(container, "workingDirectory"); folder && !is_blank(*folder))
    if (const auto path = read_text("workingDirectory", *folder, formats::path, diagnostics_)) {
      std::vector<Value> before;
      for (const std::string& word : {std::string("sh"), std::string("-c"), std::string(R"(cd -- "$0" && exec "$@")"), *path})
        before.push_back(text_value(literal(word), folder->span));
      command.items.insert(command.items.begin(), std::make_move_iterator(before.begin()), std::make_move_iterator(before.end()));
    }
  if (!command.items.empty()) set(step, "command", std::move(command));
}

void TaskReader::read_environment(const Value& container, Value& step) {
  Value variables = empty_value(Kind::map, container.span);
  std::set<std::string> names;
  for (const Value* variable : maps("environment", container)) {
    check_keys(*variable, pair_keys, "a variable");
    const auto name = text("name", *variable);
    if (!name) continue;
    const Value* content = given(*variable, "value");
    if (content && content->kind != Kind::scalar) report_type(diagnostics_, "value", "a text", *content);
    if (!names.insert(*name).second) {
      wrong("the variable '" + *name + "' is given twice", variable->span);
      continue;
    }
    auto key = text_value(*name, given(*variable, "name")->span);
    auto value = content ? text_value(content->scalar, content->span) : text_value("", variable->span);
    variables.members.push_back({std::move(key), std::move(value)});
  }
  if (!variables.members.empty()) set(step, "environment", std::move(variables));
  Value secrets = empty_value(Kind::list, container.span);
  for (const Value* secret : maps("secrets", container)) {
    check_keys(*secret, secret_keys, "a secret");
    const auto name = text("name", *secret), source = text("valueFrom", *secret);
    if (!name || !source) continue;
    notice("the secret '" + *name + "' of " + place_ + " is taken from your own variable " + *name + ", for '" + *source + "' cannot be read here",
           secret->span);
    secrets.items.push_back(text_value(*name, given(*secret, "name")->span));
  }
  if (!secrets.items.empty()) set(step, "secrets", std::move(secrets));
}

void TaskReader::read_order(const Value& container, Value& step) {
  Value after = empty_value(Kind::list, container.span);
  for (const Value* dependency : maps("dependsOn", container)) {
    check_keys(*dependency, dependency_keys, "a dependency");
    const auto name = text("containerName", *dependency), condition = text("condition", *dependency);
    if (!name || !condition) continue;
    const Span span = given(*dependency, "containerName")->span, condition_span = given(*dependency, "condition")->span;
    if (*condition == "SUCCESS" || *condition == "COMPLETE") {
      after.items.push_back(text_value(*name, span));
      if (*condition == "COMPLETE")
        notice(place_ + " waits for the success of '" + *name + "': it is skipped when that fails, where COMPLETE would start it", condition_span);
    } else if (*condition == "START" || *condition == "HEALTHY") {
      notice(place_ + " does not wait for '" + *name + "' to " + (*condition == "START" ? "start" : "be healthy") + ": they run side by side",
             condition_span);
    } else {
      wrong("'condition' must be START, COMPLETE, SUCCESS or HEALTHY, not '" + *condition + "'", condition_span);
    }
  }
  if (!after.items.empty()) set(step, "after", std::move(after));
}

void TaskReader::read_resources(const Value& container, Value& step) {
  const auto number = [&](const char* key, std::int64_t least, std::int64_t most) -> std::optional<std::int64_t> {
    const Value* value = given(container, key);
    return value && !is_blank(*value) ? whole(key, *value, least, most) : std::nullopt;
  };
  const auto place_of = [&](const char* key) { return given(container, key) ? given(container, key)->span : task_span_; };
  // A container's CPU units are a share of what is there, as ECS hands them to docker; only the task's are a limit.
  if (const auto units = number("cpu", 0, 1 << 20))
    set_in(step, {"settings", "docker", "run_args", "cpu_shares"},
           plain_value(std::to_string(std::clamp<std::int64_t>(*units, 2, 262144)), place_of("cpu")));
  if (task_cpus_) {
    std::array<char, 32> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), *task_cpus_).ptr;
    set_in(step, {"settings", "resources", "cpu_count"}, plain_value(std::string(digits.data(), end), task_span_));
  }
  const auto memory = number("memory", 4, most_mebibytes), reservation = number("memoryReservation", 4, most_mebibytes);
  if (memory && reservation && *reservation > *memory)
    wrong("'memoryReservation' of " + place_ + " is more than its 'memory'", place_of("memoryReservation"));
  if (task_memory_ && std::max(memory.value_or(0), reservation.value_or(0)) > *task_memory_)
    wrong(place_ + " has more memory than the task's " + std::to_string(*task_memory_) + " MiB", place_of(memory ? "memory" : "memoryReservation"));
  if (const auto limit = memory ? memory : task_memory_)
    set_in(step, {"settings", "resources", "memory"}, plain_value(std::to_string(*limit) + "MiB", place_of("memory")));
  if (reservation)
    set_in(step, {"settings", "docker", "run_args", "mem_reservation"},
           plain_value(std::to_string(*reservation) + "MiB", place_of("memoryReservation")));
  for (const Value* requirement : maps("resourceRequirements", container)) {
    check_keys(*requirement, requirement_keys, "a resource requirement");
    const auto type = text("type", *requirement);
    const Value* value = given(*requirement, "value");
    if (type && *type == "InferenceAccelerator")
      notice("the InferenceAccelerator of " + place_ + " cannot be had here", requirement->span);
    else if (type && *type != "GPU")
      wrong("'type' of a resource requirement must be GPU or InferenceAccelerator, not '" + *type + "'", given(*requirement, "type")->span);
    else if (type && !value)
      wrong("this resource requirement has no 'value'", requirement->span);
    else if (const Value* before = step.find("settings"); type && before && before->find("resources") && before->find("resources")->find("gpu_count"))
      wrong("GPUs are asked for twice", requirement->span);
    else if (type)
      if (const auto count = whole("value", *value, 1, 1000))
        set_in(step, {"settings", "resources", "gpu_count"}, plain_value(std::to_string(*count), value->span));
  }
}

void TaskReader::read_mounts(const Value& container, Value& step) {
  Value volumes = empty_value(Kind::list, container.span);
  for (const Value* mount : maps("mountPoints", container)) {
    check_keys(*mount, mount_keys, "a mount point");
    const auto source = text("sourceVolume", *mount), target = text("containerPath", *mount);
    if (!source || !target) continue;
    const auto volume = volumes_.find(*source);
    if (volume == volumes_.end()) {
      std::vector<std::string> names;
      for (const auto& each : volumes_) names.push_back(each.first);
      wrong("there is no volume '" + *source + "' under 'volumes'", given(*mount, "sourceVolume")->span);
      diagnostics_.back().suggestion = did_you_mean(*source, names);
      continue;
    }
    if (volume->second.source.empty()) {
      notice("the volume '" + *source + "' is not mounted in " + place_ + ": it is a service of AWS", mount->span);
      continue;
    }
    const Value* flag = given(*mount, "readOnly");
    const bool read_only = flag && read_bool("readOnly", *flag, diagnostics_).value_or(false);
    volumes.items.push_back(text_value(volume->second.source + ":" + *target + (read_only ? ":ro" : ""), mount->span));
  }
  if (!volumes.items.empty()) set_in(step, {"settings", "docker", "volumes"}, std::move(volumes));
}

void TaskReader::join(const std::string& key, const Value& from, const char* first, const char* second, const char* argument, Value& step) {
  Value list = empty_value(Kind::list, from.span);
  for (const Value* item : maps(key, from)) {
    const auto name = text(first, *item), value = text(second, *item);
    if (name && value) list.items.push_back(text_value(*name + ":" + *value, item->span));
  }
  if (!list.items.empty()) set_in(step, {"settings", "docker", "run_args", argument}, std::move(list));
}

void TaskReader::read_linux(const Value& linux, Value& step) {
  if (linux.kind != Kind::map) return report_type(diagnostics_, "linuxParameters", "a map", linux);
  check_keys(linux, linux_keys, "'linuxParameters' of " + place_);
  const auto run_arg = [&](const char* name, Value value) { set_in(step, {"settings", "docker", "run_args", name}, std::move(value)); };
  if (const Value* size = given(linux, "sharedMemorySize"); size && !is_blank(*size))
    if (const auto mebibytes = whole("sharedMemorySize", *size, 1, most_mebibytes))
      set_in(step, {"settings", "resources", "shm_size"}, plain_value(std::to_string(*mebibytes) + "MiB", size->span));
  if (const Value* wanted = given(linux, "capabilities"); wanted && wanted->kind == Kind::map) {
    check_keys(*wanted, capability_keys, "'capabilities'");
    for (const auto& [key, argument] : {std::pair("add", "cap_add"), std::pair("drop", "cap_drop")})
      if (const Value* list = given(*wanted, key); list && !is_blank(*list)) run_arg(argument, *list);
  }
  if (const Value* init = given(linux, "initProcessEnabled"); init && init->kind == Kind::scalar) run_arg("init", *init);
  if (const Value* swappiness = given(linux, "swappiness")) run_arg("mem_swappiness", *swappiness);
  if (const Value* swap = given(linux, "maxSwap")) {
    const Value* memory =
        step.find("settings") && step.find("settings")->find("resources") ? step.find("settings")->find("resources")->find("memory") : nullptr;
    const auto mebibytes = whole("maxSwap", *swap, 0, most_mebibytes);
    if (mebibytes && memory)
      run_arg("memswap_limit", plain_value(std::to_string(*mebibytes + std::stoll(memory->scalar)) + "MiB", swap->span));
    else if (mebibytes)
      notice("'maxSwap' of " + place_ + " is not honoured, for there is no 'memory'", swap->span);
  }
  Value devices = empty_value(Kind::list, linux.span);
  for (const Value* device : maps("devices", linux)) {
    check_keys(*device, device_keys, "a device");
    const auto host = text("hostPath", *device);
    if (!host) continue;
    const auto inside = given(*device, "containerPath") ? text("containerPath", *device) : host;
    std::string rights;
    if (const Value* permissions = given(*device, "permissions"))
      for (const Value& permission : permissions->items) {
        if (permission.scalar == "read" || permission.scalar == "write" || permission.scalar == "mknod")
          rights += permission.scalar[0];
        else
          report_type(diagnostics_, "permissions", "read, write or mknod", permission);
      }
    devices.items.push_back(text_value(*host + ":" + inside.value_or(*host) + ":" + (rights.empty() ? "rwm" : rights), device->span));
  }
  if (!devices.items.empty()) run_arg("devices", std::move(devices));
  for (const Value* tmpfs : maps("tmpfs", linux)) {
    check_keys(*tmpfs, tmpfs_keys, "a tmpfs");
    const auto target = text("containerPath", *tmpfs);
    const Value* size = given(*tmpfs, "size");
    const auto mebibytes = size ? whole("size", *size, 1, most_mebibytes) : std::nullopt;
    if (!size) wrong("this tmpfs has no 'size'", tmpfs->span);
    if (!target || !mebibytes) continue;
    std::string options = "size=" + std::to_string(*mebibytes) + "m";
    if (const Value* more = given(*tmpfs, "mountOptions"))
      for (const auto& option : read_texts("mountOptions", *more, formats::word, diagnostics_).value_or(std::vector<std::string>{}))
        options += "," + option;
    set_in(step, {"settings", "docker", "run_args", "tmpfs", target->c_str()}, text_value(std::move(options), tmpfs->span));
  }
}

/// Keys that only have another name in docker's SDK, and their like.
void TaskReader::read_options(const Value& container, Value& step) {
  if (const Value* user = given(container, "user"); user && !is_blank(*user)) set_in(step, {"settings", "docker", "user"}, *user);
  if (const Value* labels = given(container, "dockerLabels"); labels && !is_blank(*labels)) set_in(step, {"settings", "docker", "labels"}, *labels);
  for (const auto& [key, argument] :
       {std::pair("privileged", "privileged"), std::pair("readonlyRootFilesystem", "read_only"), std::pair("hostname", "hostname"),
        std::pair("dnsServers", "dns"), std::pair("dnsSearchDomains", "dns_search"), std::pair("dockerSecurityOptions", "security_opt")})
    if (const Value* value = given(container, key); value && !is_blank(*value)) set_in(step, {"settings", "docker", "run_args", argument}, *value);
  if (const Value* disable = given(container, "disableNetworking"); disable && read_bool("disableNetworking", *disable, diagnostics_).value_or(false))
    set_in(step, {"settings", "docker", "network"}, text_value("none", disable->span));
  join("extraHosts", container, "hostname", "ipAddress", "extra_hosts", step);
  for (const Value* control : maps("systemControls", container)) {
    check_keys(*control, control_keys, "a system control");
    const auto name = text("namespace", *control), value = text("value", *control);
    if (name && value) set_in(step, {"settings", "docker", "run_args", "sysctls", name->c_str()}, text_value(*value, control->span));
  }
  for (const Value* limit : maps("ulimits", container)) {
    check_keys(*limit, ulimit_keys, "an ulimit");
    const auto name = text("name", *limit);
    const Value *soft = given(*limit, "softLimit"), *hard = given(*limit, "hardLimit");
    if (!soft || !hard) wrong("an ulimit has 'name', 'softLimit' and 'hardLimit'", limit->span);
    if (!name || !soft || !hard) continue;
    set_in(step, {"settings", "docker", "run_args", "ulimits", name->c_str(), "soft"}, *soft);
    set_in(step, {"settings", "docker", "run_args", "ulimits", name->c_str(), "hard"}, *hard);
  }
  if (const Value* linux = given(container, "linuxParameters")) read_linux(*linux, step);
}

void TaskReader::read_container(const Value& container, Value& steps) {
  const Value* name = given(container, "name");
  place_ = "a container";
  if (name && name->kind == Kind::scalar) place_ = "container '" + name->scalar + "'";
  check_keys(container, container_keys, place_);
  if (!name || name->kind != Kind::scalar) return wrong("this container has no 'name'", name ? name->span : container.span);
  if (steps.find(name->scalar)) return wrong("there are two containers '" + name->scalar + "'", name->span);
  Value step = empty_value(Kind::map, container.span);
  read_command(container, step);
  if (const Value* image = given(container, "image"))
    set_in(step, {"settings", "docker", "parent_image"}, *image);
  else
    wrong(place_ + " has no 'image'", name->span);
  read_environment(container, step);
  read_order(container, step);
  read_resources(container, step);
  read_mounts(container, step);
  read_options(container, step);
  if (!step.find("command")) set(step, "command", text_value("false", container.span));  // has been reported
  auto key = text_value(name->scalar, name->span);
  steps.members.push_back({std::move(key), std::move(step)});
}

Value TaskReader::read(const Value& task) {
  task_span_ = task.span;
  Value pipeline = empty_value(Kind::map, task.span);
  check_keys(task, task_keys, "the task definition");
  if (const Value* family = given(task, "family")) {
    family_ = family->scalar;
    set(pipeline, "name", *family);
  } else {
    wrong("the task definition has no 'family'", task.span);
    set(pipeline, "name", text_value("task", task.span));
  }
  Value tags = empty_value(Kind::list, task.span);
  for (const Value* tag : maps("tags", task)) {
    const auto key = text("key", *tag);
    const Value* value = given(*tag, "value");
    if (key) tags.items.push_back(text_value(*key + (value ? "=" + value->scalar : ""), tag->span));
  }
  if (!tags.items.empty()) set(pipeline, "tags", std::move(tags));
  read_volumes(task);
  read_task_limits(task);
  const auto containers = maps("containerDefinitions", task);
  if (containers.empty()) wrong("the task definition has no containers", task.span);
  bool all_essential = true;
  for (const Value* container : containers)
    if (const Value* essential = given(*container, "essential"); essential && !read_bool("essential", *essential, diagnostics_).value_or(true)) {
      all_essential = false;
      notice("'essential: false' is honoured in part: the other steps go on when this one fails, but the run counts as failed", essential->span);
    }
  set(pipeline, "execution_mode", plain_value(all_essential ? "fail_fast" : "continue_on_failure", task.span));
  set(pipeline, "cache", plain_value("false", task.span));    // a task is run, not made
  set(pipeline, "code", empty_value(Kind::list, task.span));  // all that it runs is in its images
  read_task_settings(task, pipeline);
  Value steps = empty_value(Kind::map, task.span);
  for (const Value* container : containers) read_container(*container, steps);
  set(pipeline, "steps", std::move(steps));
  return pipeline;
}

const Value* described(const Value& document) {
  const Value* inner = document.find("taskDefinition");
  return inner && inner->kind == Kind::map ? inner : nullptr;
}

}  // namespace

bool is_task_definition(const Value& document) {
  const Value* inner = described(document);
  return document.find("containerDefinitions") || (inner && inner->find("containerDefinitions"));
}

Value pipeline_of(const Value& document, Diagnostics& diagnostics, Diagnostics& notices) {
  const Value* inner = document.find("containerDefinitions") ? nullptr : described(document);
  return TaskReader(diagnostics, notices).read(inner ? *inner : document);
}

}  // namespace pipeline::spec
