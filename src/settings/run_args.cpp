#include "settings/run_args.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include <nlohmann/json.hpp>

#include "core/quantity.hpp"
#include "settings/decode.hpp"

namespace pipeline::settings {
namespace {

using nlohmann::json;

enum class ArgumentKind { flag, number, text, texts, map, size, hosts, limits };

struct Argument {
  const char* name;
  ArgumentKind kind;
  const char* description;
  int minimum = 0, maximum = 0;  ///< Range of a number.
};

constexpr std::array argument_table{
    Argument{"cap_add", ArgumentKind::texts,
             "Kernel capabilities to add, such as SYS_PTRACE. MKNOD and SETFCAP, which engines "
             "give, are withheld without it."},
    Argument{"cap_drop", ArgumentKind::texts, "Kernel capabilities to drop."},
    Argument{
        "cpu_shares", ArgumentKind::number,
        "Weight of the container's CPU time where others want it too, 2 to 262144; 1024 is usual.",
        2, 262144},
    Argument{"device_cgroup_rules", ArgumentKind::texts,
             "Rules of the device cgroup, such as `c 10:200 rwm`."},
    Argument{"devices", ArgumentKind::texts,
             "Devices of the host: `/dev/fuse` or `/dev/host:/dev/container:rwm`."},
    Argument{"dns", ArgumentKind::texts, "Name servers."},
    Argument{"dns_search", ArgumentKind::texts, "Domains in which names are looked up."},
    Argument{"domainname", ArgumentKind::text, "Domain name of the container."},
    Argument{"extra_hosts", ArgumentKind::hosts,
             "Entries for /etc/hosts: a map of names to addresses, or a list of `NAME:ADDRESS`."},
    Argument{"group_add", ArgumentKind::texts, "Further groups of the step's user."},
    Argument{"hostname", ArgumentKind::text, "Host name of the container."},
    Argument{"init", ArgumentKind::flag,
             "Run an init process that forwards signals and reaps processes."},
    Argument{"ipc_mode", ArgumentKind::text,
             "IPC namespace: private, shareable, host, none or container:NAME."},
    Argument{"mem_reservation", ArgumentKind::size,
             "Memory that the kernel leaves the container when memory is short; below "
             "`resources.memory`."},
    Argument{"mem_swappiness", ArgumentKind::number, "Readiness of the kernel to swap, 0 to 100.",
             0, 100},
    Argument{"memswap_limit", ArgumentKind::size,
             "Memory and swap together; -1 for no limit of swap."},
    Argument{"oom_score_adj", ArgumentKind::number,
             "Preference of the kernel's OOM killer, -1000 to 1000.", -1000, 1000},
    Argument{"pid_mode", ArgumentKind::text, "PID namespace: host or container:NAME."},
    Argument{"pids_limit", ArgumentKind::number,
             "Maximum number of processes in the container; -1 for no limit.", -1, 4194304},
    Argument{"privileged", ArgumentKind::flag, "Give the container all rights of the host's root."},
    Argument{"read_only", ArgumentKind::flag, "Mount the container's root file system read-only."},
    Argument{"security_opt", ArgumentKind::texts,
             "Security options, such as `seccomp=unconfined`. Without `no-new-privileges=false` no "
             "program, such as sudo, gains rights by its setuid bit."},
    Argument{"shm_size", ArgumentKind::size,
             "Size of /dev/shm; `resources.shm_size` says the same for every orchestrator."},
    Argument{"storage_opt", ArgumentKind::map,
             "Options of the storage driver, such as `{size: 20G}`."},
    Argument{"sysctls", ArgumentKind::map, "Kernel parameters of the container's namespaces."},
    Argument{"tmpfs", ArgumentKind::map,
             "File systems in memory: a path to its options, such as `{/scratch: size=1g}`."},
    Argument{"ulimits", ArgumentKind::limits,
             "Resource limits: a name to a number, or to {soft, hard}."},
    Argument{"userns_mode", ArgumentKind::text, "User namespace: host."},
    Argument{"uts_mode", ArgumentKind::text, "UTS namespace: host."},
};

/// An option of the SDK that another setting, or pipe itself, provides.
struct OtherSetting {
  const char* name;
  const char* note;
};
constexpr std::array other_settings{
    OtherSetting{"environment", "use `environment` of the step, or `docker.runtime_environment`"},
    OtherSetting{"working_dir", "the working directory of a step is its code"},
    OtherSetting{"volumes", "use `docker.volumes`"},
    OtherSetting{"mounts", "use `docker.volumes`"},
    OtherSetting{"network", "use `docker.network`"},
    OtherSetting{"network_mode", "use `docker.network`"},
    OtherSetting{"user", "use `docker.user`"},
    OtherSetting{"platform", "use `docker.platform`"},
    OtherSetting{"labels", "use `docker.labels`"},
    OtherSetting{"mem_limit", "use `resources.memory`"},
    OtherSetting{"nano_cpus", "use `resources.cpu_count`"},
    OtherSetting{"cpu_count", "use `resources.cpu_count`"},
    OtherSetting{"cpus", "use `resources.cpu_count`"},
    OtherSetting{"device_requests", "use `resources.gpu_count`"},
    OtherSetting{"gpus", "use `resources.gpus`"},
    OtherSetting{"runtime", "leave it out: a step with GPUs gets NVIDIA's if its engine needs it"},
    OtherSetting{"entrypoint", "use `command` of the step"},
    OtherSetting{"command", "use `command` of the step"},
};

/// Returns true for a whole number within the bounds. A number beyond the largest std::int64_t is
/// not: the operators of nlohmann's library would take it for a negative one.
bool is_within(const json& number, std::int64_t minimum, std::int64_t maximum) {
  if (!number.is_number_integer()) return false;
  if (number.is_number_unsigned() &&
      number.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()})
    return false;
  return minimum <= number.get<std::int64_t>() && number.get<std::int64_t>() <= maximum;
}

std::optional<json> read_whole(const std::string& key, const core::Value& value,
                               std::int64_t minimum, std::int64_t maximum,
                               Diagnostics& diagnostics) {
  if (value.kind == core::Value::Kind::scalar && !value.quoted)
    if (auto number = plain_to_json(value.scalar); number && is_within(*number, minimum, maximum))
      return number;
  report_type(diagnostics, key,
              "a whole number from " + std::to_string(minimum) + " to " + std::to_string(maximum),
              value);
  return std::nullopt;
}

std::optional<json> read_hosts(const std::string& key, const core::Value& value,
                               Diagnostics& diagnostics) {
  json hosts = json::array();
  if (value.kind == core::Value::Kind::list) {
    if (auto texts = read_texts(key, value, formats::host_entry, diagnostics)) hosts = *texts;
  } else if (auto map = read_map(key, value, formats::word, formats::word, diagnostics)) {
    for (const auto& [name, address] : *map) hosts.push_back(name + ":" + address);
  }
  return hosts;
}

std::optional<json> read_limits(const std::string& key, const core::Value& value,
                                Diagnostics& diagnostics) {
  if (!expect_map(key, value, diagnostics)) return std::nullopt;
  static const std::vector<std::string> allowed{"soft", "hard"};
  // runc's names of the limits of setrlimit(2).
  static const std::vector<std::string> names{
      "as",   "core",   "cpu",   "data", "fsize",  "locks",  "memlock",    "msgqueue",
      "nice", "nofile", "nproc", "rss",  "rtprio", "rttime", "sigpending", "stack"};
  report_unknown_keys(value, names, "'" + key + "'", diagnostics);
  constexpr std::int64_t max_allowed = std::int64_t{1} << 62;
  json limits = json::object();
  for (const auto& [name, limit] : value.members) {
    const std::string limit_key = key + "." + name.scalar;
    if (limit.kind != core::Value::Kind::map) {
      if (auto number = read_whole(limit_key, limit, -1, max_allowed, diagnostics))
        limits[name.scalar] = {{"soft", *number}, {"hard", *number}};
      continue;
    }
    report_unknown_keys(limit, allowed, "'" + limit_key + "'", diagnostics);
    for (const auto& part : allowed) {
      const core::Value* number = limit.find(part);
      if (!number)
        report(diagnostics, "missing-key", "'" + limit_key + "' lacks '" + part + "'", name.span);
      else if (auto whole =
                   read_whole(limit_key + "." + part, *number, -1, max_allowed, diagnostics))
        limits[name.scalar][part] = *whole;
    }
  }
  return limits;
}

std::optional<json> decode_argument(const Argument& argument, const core::Value& value,
                                    Diagnostics& diagnostics) {
  const std::string key = std::string("run_args.") + argument.name;
  const auto as_json = [](auto&& read) -> std::optional<json> {
    return read ? std::optional<json>(*read) : std::nullopt;
  };
  switch (argument.kind) {
    case ArgumentKind::flag: return as_json(read_bool(key, value, diagnostics));
    case ArgumentKind::number:
      return read_whole(key, value, argument.minimum, argument.maximum, diagnostics);
    case ArgumentKind::text: return as_json(read_text(key, value, formats::word, diagnostics));
    case ArgumentKind::texts: return as_json(read_texts(key, value, formats::word, diagnostics));
    case ArgumentKind::map:
      return as_json(read_map(key, value, formats::word, formats::line, diagnostics));
    case ArgumentKind::size:
      if (value.kind == core::Value::Kind::scalar && value.scalar == "-1" &&
          std::string_view(argument.name) == "memswap_limit")
        return json(-1);
      return as_json(read_bytes(key, value, diagnostics));
    case ArgumentKind::hosts: return read_hosts(key, value, diagnostics);
    case ArgumentKind::limits: return read_limits(key, value, diagnostics);
  }
  return std::nullopt;
}

json schema_of(const Argument& argument) {
  const json text{{"type", "string"}};
  const json scalar{{"type", {"string", "number", "boolean"}}};
  switch (argument.kind) {
    case ArgumentKind::flag: return {{"type", "boolean"}};
    case ArgumentKind::number:
      return {{"type", "integer"}, {"minimum", argument.minimum}, {"maximum", argument.maximum}};
    case ArgumentKind::text: return text;
    case ArgumentKind::texts: return {{"type", "array"}, {"items", scalar}};
    case ArgumentKind::map: return {{"type", "object"}, {"additionalProperties", scalar}};
    case ArgumentKind::size: {
      json size = bytes_schema();
      if (std::string_view(argument.name) == "memswap_limit") size["minimum"] = -1;
      return size;
    }
    case ArgumentKind::hosts:
      return {{"anyOf",
               {{{"type", "object"}, {"additionalProperties", text}},
                {{"type", "array"}, {"items", text}}}}};
    case ArgumentKind::limits: {
      const json whole{{"type", "integer"}, {"minimum", -1}};
      const json pair{{"type", "object"},
                      {"properties", {{"soft", whole}, {"hard", whole}}},
                      {"required", {"soft", "hard"}},
                      {"additionalProperties", false}};
      return {{"type", "object"}, {"additionalProperties", {{"anyOf", {whole, pair}}}}};
    }
  }
  return {};
}

const std::vector<std::string>& argument_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Argument& argument : argument_table) all.emplace_back(argument.name);
    return all;
  }();
  return names;
}

}  // namespace

std::map<std::string, Json> decode_run_args(const core::Value& value, Diagnostics& diagnostics) {
  std::map<std::string, Json> decoded;
  if (!expect_map("run_args", value, diagnostics)) return decoded;
  for (const auto& [key, member] : value.members) {
    const auto is_key = [&name = key.scalar](const auto& each) { return name == each.name; };
    const auto argument = std::find_if(argument_table.begin(), argument_table.end(), is_key);
    const auto other = std::find_if(other_settings.begin(), other_settings.end(), is_key);
    if (argument != argument_table.end()) {
      if (auto json_value = decode_argument(*argument, member, diagnostics))
        decoded.emplace(key.scalar, std::move(*json_value));
    } else if (other != other_settings.end()) {
      report(diagnostics, "unknown-key", "'" + key.scalar + "' is not allowed in 'run_args'",
             key.span, {other->note});
    } else {
      core::Value only;
      only.kind = core::Value::Kind::map;
      only.members.push_back({key, core::Value{}});
      report_unknown_keys(only, argument_names(), "'run_args'", diagnostics);
    }
  }
  return decoded;
}

json run_args_schema() {
  json properties = json::object();
  for (const Argument& argument : argument_table) {
    json schema = schema_of(argument);
    schema["description"] = argument.description;
    properties[argument.name] = std::move(schema);
  }
  return {
      {"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
}

}  // namespace pipeline::settings
