#include "ecs_import/task_container.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "model/value_builder.hpp"
#include "settings/decode.hpp"

namespace pipeline::ecs_import {
namespace {

using Kind = core::Value::Kind;

/// Escapes `${`, which has a meaning in a pipeline file and none in ECS.
std::string literal(const std::string& text) {
  std::string escaped;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "${") == 0) escaped += '$';
    escaped += text[i];
  }
  return escaped;
}

}  // namespace

/// Joins `entryPoint` and `command`, as ECS does. If there is a working directory, a shell changes
/// to that directory and executes the words unchanged.
void ContainerReader::read_command(const core::Value& container, core::Value& step) {
  core::Value command = model::empty_value(Kind::list, container.span);
  for (const char* key : {"entryPoint", "command"})
    if (const core::Value* words = given(container, key))
      if (const auto texts =
              settings::read_texts(key, *words, settings::formats::text, document_.diagnostics());
          texts && texts->size() == words->items.size())
        for (std::size_t i = 0; i < texts->size(); ++i)
          command.items.push_back(model::text_value(literal((*texts)[i]), words->items[i].span));
  const core::Value* words = given(container, "command");
  const core::Value* entry = given(container, "entryPoint");
  if ((!words || words->items.empty()) && (!entry || entry->items.empty()))
    document_.report_error(
        label_ + " has no command", container.span,
        {"pipe does not read the image's own command: write it under 'entryPoint' or "
         "'command' (`docker image inspect` shows it)"});
  else if ((!entry || entry->items.empty()) && !std::exchange(has_entry_point_notice_, true))
    document_.report_unsupported(
        "'command' of " + label_ +
            " is run as it stands: if the image has an entry point, write it under 'entryPoint'",
        words->span);
  if (const core::Value* folder = given(container, "workingDirectory");
      folder && !is_blank(*folder))
    if (const auto path = settings::read_text("workingDirectory", *folder, settings::formats::path,
                                              document_.diagnostics())) {
      std::vector<core::Value> before;
      for (const std::string& word :
           {std::string("sh"), std::string("-c"), std::string(R"(cd -- "$0" && exec "$@")"), *path})
        before.push_back(model::text_value(literal(word), folder->span));
      auto& all = command.items.vector();
      all.insert(all.begin(), std::make_move_iterator(before.begin()),
                 std::make_move_iterator(before.end()));
    }
  if (!command.items.empty()) model::set(step, "command", std::move(command));
}

void ContainerReader::read_environment(const core::Value& container, core::Value& step) {
  core::Value variables = model::empty_value(Kind::map, container.span);
  std::set<std::string> names;
  for (const core::Value* variable : document_.maps("environment", container)) {
    document_.check_keys(*variable, pair_keys, "a variable");
    const auto name = document_.text("name", *variable);
    if (!name) continue;
    const core::Value* content = given(*variable, "value");
    if (content && content->kind != Kind::scalar)
      settings::report_type(document_.diagnostics(), "value", "a text", *content);
    if (!names.insert(*name).second) {
      document_.report_error("the variable '" + *name + "' is given twice", variable->span);
      continue;
    }
    auto key = model::text_value(*name, given(*variable, "name")->span);
    auto value = content ? model::text_value(literal(content->scalar), content->span)
                         : model::text_value("", variable->span);
    variables.members.push_back({std::move(key), std::move(value)});
  }
  if (!variables.members.empty()) model::set(step, "environment", std::move(variables));
  core::Value secrets = model::empty_value(Kind::list, container.span);
  for (const core::Value* secret : document_.maps("secrets", container)) {
    document_.check_keys(*secret, secret_keys, "a secret");
    const auto name = document_.text("name", *secret),
               source = document_.text("valueFrom", *secret);
    if (!name || !source) continue;
    document_.report_unsupported("the secret '" + *name + "' of " + label_ +
                                     " is taken from your own variable " + *name + ", because '" +
                                     *source + "' cannot be read here",
                                 secret->span);
    secrets.items.push_back(model::text_value(*name, given(*secret, "name")->span));
  }
  if (!secrets.items.empty()) model::set(step, "secrets", std::move(secrets));
}

void ContainerReader::read_order(const core::Value& container, core::Value& step) {
  core::Value after = model::empty_value(Kind::list, container.span);
  for (const core::Value* dependency : document_.maps("dependsOn", container)) {
    document_.check_keys(*dependency, dependency_keys, "a dependency");
    const auto name = document_.text("containerName", *dependency),
               condition = document_.text("condition", *dependency);
    if (!name || !condition) continue;
    const core::Span span = given(*dependency, "containerName")->span,
                     condition_span = given(*dependency, "condition")->span;
    if (*condition == "SUCCESS" || *condition == "COMPLETE") {
      after.items.push_back(model::text_value(*name, span));
      if (*condition == "COMPLETE" && !task_.may_fail.contains(*name))
        document_.report_unsupported(
            label_ + " waits for the success of '" + *name +
                "': it is skipped when that fails, where COMPLETE would start it",
            condition_span);
    } else if (*condition == "START" || *condition == "HEALTHY") {
      if (!task_.containers.contains(*name))
        document_.report_error(
            label_ + " depends on '" + *name + "', which is not a container of the task", span);
      document_.report_unsupported(label_ + " does not wait for '" + *name + "' to " +
                                       (*condition == "START" ? "start" : "be healthy") +
                                       ": they run side by side",
                                   condition_span);
    } else {
      document_.report_error(
          "'condition' must be START, COMPLETE, SUCCESS or HEALTHY, not '" + *condition + "'",
          condition_span);
    }
  }
  if (!after.items.empty()) model::set(step, "after", std::move(after));
}

/// Returns the whole number under the container's key; nothing if the key is missing or blank.
std::optional<std::int64_t> ContainerReader::number_of(const core::Value& container,
                                                       const char* key, std::int64_t min,
                                                       std::int64_t max) {
  const core::Value* value = given(container, key);
  return value && !is_blank(*value) ? document_.whole_number(key, *value, min, max) : std::nullopt;
}

/// Returns the position of the key's value; that of the task if the container has no such key.
core::Span ContainerReader::span_of(const core::Value& container, const char* key) const {
  const core::Value* value = given(container, key);
  return value ? value->span : task_.span;
}

void ContainerReader::read_cpu(const core::Value& container, core::Value& step) {
  // A container's CPU units are a share of the available CPUs, which ECS passes to docker; only the
  // task's units are a limit.
  constexpr std::int64_t max_units = 1 << 20;                  // 1,024 CPUs.
  constexpr std::int64_t min_shares = 2, max_shares = 262144;  // Bounds of Linux.
  if (const auto units = number_of(container, "cpu", 0, max_units))
    model::set_in(step, {"settings", "docker", "run_args", "cpu_shares"},
                  model::plain_value(std::to_string(std::clamp(*units, min_shares, max_shares)),
                                     span_of(container, "cpu")));
  if (task_.cpus) {
    std::array<char, 32> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), *task_.cpus).ptr;
    model::set_in(step, {"settings", "resources", "cpu_count"},
                  model::plain_value(std::string(digits.data(), end), task_.span));
  }
}

void ContainerReader::read_memory(const core::Value& container, core::Value& step) {
  constexpr std::int64_t min_mebibytes = 4;  // ECS takes no smaller limit.
  const auto memory = number_of(container, "memory", min_mebibytes, max_mebibytes),
             reservation = number_of(container, "memoryReservation", min_mebibytes, max_mebibytes);
  if (memory && reservation && *reservation > *memory)
    document_.report_error("'memoryReservation' of " + label_ + " is more than its 'memory'",
                           span_of(container, "memoryReservation"));
  if (task_.memory && std::max(memory.value_or(0), reservation.value_or(0)) > *task_.memory)
    document_.report_error(
        label_ + " has more memory than the task's " + std::to_string(*task_.memory) + " MiB",
        span_of(container, memory ? "memory" : "memoryReservation"));
  if (const auto limit = memory ? memory : task_.memory)
    model::set_in(step, {"settings", "resources", "memory"},
                  model::plain_value(std::to_string(*limit) + "MiB", span_of(container, "memory")));
  if (reservation)
    model::set_in(step, {"settings", "docker", "run_args", "mem_reservation"},
                  model::plain_value(std::to_string(*reservation) + "MiB",
                                     span_of(container, "memoryReservation")));
}

void ContainerReader::read_gpus(const core::Value& container, core::Value& step) {
  constexpr std::int64_t max_gpus = 1000;  // More than any machine has.
  for (const core::Value* requirement : document_.maps("resourceRequirements", container)) {
    document_.check_keys(*requirement, requirement_keys, "a resource requirement");
    const auto type = document_.text("type", *requirement);
    const core::Value* value = given(*requirement, "value");
    if (type && *type == "InferenceAccelerator")
      document_.report_unsupported("the InferenceAccelerator of " + label_ + " is not supported",
                                   requirement->span);
    else if (type && *type != "GPU")
      document_.report_error(
          "'type' of a resource requirement must be GPU or InferenceAccelerator, not '" + *type +
              "'",
          given(*requirement, "type")->span);
    else if (type && !value)
      document_.report_error("this resource requirement has no 'value'", requirement->span);
    else if (const core::Value* before = step.find("settings");
             type && before && before->find("resources") &&
             before->find("resources")->find("gpu_count"))
      document_.report_error("GPUs are asked for twice", requirement->span);
    else if (type)
      if (const auto count = document_.whole_number("value", *value, 1, max_gpus))
        model::set_in(step, {"settings", "resources", "gpu_count"},
                      model::plain_value(std::to_string(*count), value->span));
  }
}

void ContainerReader::read_mounts(const core::Value& container, core::Value& step) {
  core::Value volumes = model::empty_value(Kind::list, container.span);
  for (const core::Value* mount : document_.maps("mountPoints", container)) {
    document_.check_keys(*mount, mount_keys, "a mount point");
    const auto source = document_.text("sourceVolume", *mount),
               target = document_.text("containerPath", *mount);
    if (!source || !target) continue;
    const auto volume = task_.volumes.find(*source);
    if (volume == task_.volumes.end()) {
      std::vector<std::string> names;
      for (const auto& each : task_.volumes) names.push_back(each.first);
      document_.report_error("there is no volume '" + *source + "' under 'volumes'",
                             given(*mount, "sourceVolume")->span);
      document_.diagnostics().back().suggestion = core::did_you_mean(*source, names);
      continue;
    }
    if (volume->second.empty()) {
      document_.report_unsupported(
          "the volume '" + *source + "' is not mounted in " + label_ + ": it is a service of AWS",
          mount->span);
      continue;
    }
    const core::Value* flag = given(*mount, "readOnly");
    const bool read_only =
        flag && settings::read_bool("readOnly", *flag, document_.diagnostics()).value_or(false);
    volumes.items.push_back(
        model::text_value(volume->second + ":" + *target + (read_only ? ":ro" : ""), mount->span));
  }
  if (!volumes.items.empty())
    model::set_in(step, {"settings", "docker", "volumes"}, std::move(volumes));
}

void ContainerReader::read_extra_hosts(const core::Value& container, core::Value& step) {
  core::Value hosts = model::empty_value(Kind::list, container.span);
  for (const core::Value* host : document_.maps("extraHosts", container)) {
    document_.check_keys(*host, extra_host_keys, "'extraHosts'");
    const auto name = document_.text("hostname", *host),
               address = document_.text("ipAddress", *host);
    if (name && address)
      hosts.items.push_back(model::text_value(*name + ":" + *address, host->span));
  }
  if (!hosts.items.empty())
    model::set_in(step, {"settings", "docker", "run_args", "extra_hosts"}, std::move(hosts));
}

void ContainerReader::read_linux(const core::Value& linux, core::Value& step) {
  if (linux.kind != Kind::map)
    return settings::report_type(document_.diagnostics(), "linuxParameters", "a map", linux);
  document_.check_keys(linux, linux_keys, "'linuxParameters' of " + label_);
  const auto run_arg = [&](const char* name, core::Value value) {
    model::set_in(step, {"settings", "docker", "run_args", name}, std::move(value));
  };
  if (const core::Value* size = given(linux, "sharedMemorySize"); size && !is_blank(*size))
    if (const auto mebibytes = document_.whole_number("sharedMemorySize", *size, 1, max_mebibytes))
      model::set_in(step, {"settings", "resources", "shm_size"},
                    model::plain_value(std::to_string(*mebibytes) + "MiB", size->span));
  if (const core::Value* wanted = document_.map_at("capabilities", linux)) {
    document_.check_keys(*wanted, capability_keys, "'capabilities'");
    for (const auto& [key, argument] : {std::pair("add", "cap_add"), std::pair("drop", "cap_drop")})
      if (const core::Value* list = given(*wanted, key); list && !is_blank(*list))
        run_arg(argument, *list);
  }
  if (const core::Value* init = given(linux, "initProcessEnabled")) run_arg("init", *init);
  if (const core::Value* swappiness = given(linux, "swappiness"))
    run_arg("mem_swappiness", *swappiness);
  if (const core::Value* swap = given(linux, "maxSwap")) {
    const core::Value* memory = step.find("settings") && step.find("settings")->find("resources")
                                    ? step.find("settings")->find("resources")->find("memory")
                                    : nullptr;
    const auto mebibytes = document_.whole_number("maxSwap", *swap, 0, max_mebibytes);
    if (mebibytes && memory)
      run_arg("memswap_limit",
              model::plain_value(std::to_string(*mebibytes + std::stoll(memory->scalar)) + "MiB",
                                 swap->span));
    else if (mebibytes)
      document_.report_unsupported(
          "'maxSwap' of " + label_ + " is not honoured, because there is no 'memory'", swap->span);
  }
  read_devices(linux, step);
  read_tmpfs(linux, step);
}

void ContainerReader::read_devices(const core::Value& linux, core::Value& step) {
  core::Value devices = model::empty_value(Kind::list, linux.span);
  for (const core::Value* device : document_.maps("devices", linux)) {
    document_.check_keys(*device, device_keys, "a device");
    const auto host = document_.text("hostPath", *device);
    if (!host) continue;
    const auto inside =
        given(*device, "containerPath") ? document_.text("containerPath", *device) : host;
    std::string rights;
    if (const core::Value* permissions = given(*device, "permissions")) {
      if (permissions->kind != Kind::list)
        settings::report_type(document_.diagnostics(), "permissions", "a list", *permissions);
      for (const core::Value& permission : permissions->items) {
        if (permission.scalar == "read" || permission.scalar == "write" ||
            permission.scalar == "mknod")
          rights += permission.scalar[0];
        else
          settings::report_type(document_.diagnostics(), "permissions", "read, write or mknod",
                                permission);
      }
    }
    devices.items.push_back(model::text_value(
        *host + ":" + inside.value_or(*host) + ":" + (rights.empty() ? "rwm" : rights),
        device->span));
  }
  if (!devices.items.empty())
    model::set_in(step, {"settings", "docker", "run_args", "devices"}, std::move(devices));
}

void ContainerReader::read_tmpfs(const core::Value& linux, core::Value& step) {
  for (const core::Value* tmpfs : document_.maps("tmpfs", linux)) {
    document_.check_keys(*tmpfs, tmpfs_keys, "a tmpfs");
    const auto target = document_.text("containerPath", *tmpfs);
    const core::Value* size = given(*tmpfs, "size");
    const auto mebibytes =
        size ? document_.whole_number("size", *size, 1, max_mebibytes) : std::nullopt;
    if (!size) document_.report_error("this tmpfs has no 'size'", tmpfs->span);
    if (!target || !mebibytes) continue;
    std::string options = "size=" + std::to_string(*mebibytes) + "m";
    if (const core::Value* more = given(*tmpfs, "mountOptions"))
      for (const auto& option : settings::read_texts("mountOptions", *more, settings::formats::word,
                                                     document_.diagnostics())
                                    .value_or(std::vector<std::string>{}))
        options += "," + option;
    model::set_in(step, {"settings", "docker", "run_args", "tmpfs", target->c_str()},
                  model::text_value(std::move(options), tmpfs->span));
  }
}

/// Copies the keys that `run_args` has as well, some under other names, and converts the values
/// that `run_args` writes differently.
void ContainerReader::read_options(const core::Value& container, core::Value& step) {
  if (const core::Value* user = given(container, "user"); user && !is_blank(*user))
    model::set_in(step, {"settings", "docker", "user"}, *user);
  if (const core::Value* labels = given(container, "dockerLabels"); labels && !is_blank(*labels)) {
    auto& made = model::set_in(step, {"settings", "docker", "labels"}, *labels);
    for (auto& [name, label] : made.members) label.scalar = literal(label.scalar);
  }
  for (const auto& [key, argument] :
       {std::pair("privileged", "privileged"), std::pair("readonlyRootFilesystem", "read_only"),
        std::pair("hostname", "hostname"), std::pair("dnsServers", "dns"),
        std::pair("dnsSearchDomains", "dns_search"),
        std::pair("dockerSecurityOptions", "security_opt")})
    if (const core::Value* value = given(container, key); value && !is_blank(*value))
      model::set_in(step, {"settings", "docker", "run_args", argument}, *value);
  if (const core::Value* disable = given(container, "disableNetworking");
      disable &&
      settings::read_bool("disableNetworking", *disable, document_.diagnostics()).value_or(false))
    model::set_in(step, {"settings", "docker", "network"},
                  model::text_value("none", disable->span));
  read_extra_hosts(container, step);
  for (const core::Value* control : document_.maps("systemControls", container)) {
    document_.check_keys(*control, control_keys, "a system control");
    const auto name = document_.text("namespace", *control),
               value = document_.text("value", *control);
    if (name && value)
      model::set_in(step, {"settings", "docker", "run_args", "sysctls", name->c_str()},
                    model::text_value(*value, control->span));
  }
  for (const core::Value* limit : document_.maps("ulimits", container)) {
    document_.check_keys(*limit, ulimit_keys, "an ulimit");
    const auto name = document_.text("name", *limit);
    const core::Value *soft = given(*limit, "softLimit"), *hard = given(*limit, "hardLimit");
    if (!soft || !hard)
      document_.report_error("an ulimit has 'name', 'softLimit' and 'hardLimit'", limit->span);
    if (!name || !soft || !hard) continue;
    model::set_in(step, {"settings", "docker", "run_args", "ulimits", name->c_str(), "soft"},
                  *soft);
    model::set_in(step, {"settings", "docker", "run_args", "ulimits", name->c_str(), "hard"},
                  *hard);
  }
  if (const core::Value* linux = given(container, "linuxParameters")) read_linux(*linux, step);
}

void ContainerReader::read(const core::Value& container, core::Value& steps) {
  const core::Value* name = given(container, "name");
  label_ = "a container";
  if (name && name->kind == Kind::scalar) label_ = "container '" + name->scalar + "'";
  document_.check_keys(container, container_keys, label_);
  if (!name || name->kind != Kind::scalar)
    return document_.report_error("this container has no 'name'",
                                  name ? name->span : container.span);
  if (steps.find(name->scalar))
    return document_.report_error("there are two containers '" + name->scalar + "'", name->span);
  core::Value step = model::empty_value(Kind::map, container.span);
  read_command(container, step);
  if (const core::Value* image = given(container, "image"))
    model::set_in(step, {"settings", "docker", "parent_image"}, *image);
  else
    document_.report_error(label_ + " has no 'image'", name->span);
  read_environment(container, step);
  read_order(container, step);
  read_cpu(container, step);
  read_memory(container, step);
  read_gpus(container, step);
  read_mounts(container, step);
  read_options(container, step);
  if (task_.may_fail.contains(name->scalar))
    model::set(step, "allow_failure",
               model::plain_value("true", given(container, "essential")->span));
  if (!step.find("command"))  // The error has been reported; the document needs a command.
    model::set(step, "command", model::text_value("false", container.span));
  auto key = model::text_value(name->scalar, name->span);
  steps.members.push_back({std::move(key), std::move(step)});
}

}  // namespace pipeline::ecs_import
