#include "spec/services_reader.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/text.hpp"
#include "spec/keys.hpp"
#include "spec/read_step.hpp"
#include "spec/variables_reader.hpp"

namespace pipeline::spec {
namespace {

using nlohmann::json;
using Strings = std::vector<std::string>;

// Kubernetes allows 63 characters for a container's name, which is the service's with a prefix.
constexpr std::size_t max_label = 50;
constexpr unsigned max_port = 65535;
constexpr const char* service_example = "as in `db: {image: \"postgres:16\", ready: {port: 5432}}`";

bool is_label_character(char c) { return core::is_lower(c) || core::is_digit(c) || c == '-'; }

/// Accepts a DNS label (RFC 1123) that does not name the machine itself.
bool is_service_name(std::string_view text) {
  return !text.empty() && text.size() <= max_label && text.front() != '-' && text.back() != '-' &&
         core::all(text, is_label_character) && text != "localhost";
}

std::string nearest_service_name(std::string_view text) {
  std::string name;
  for (const char c : core::lower(text.substr(0, max_label)))
    name += is_label_character(c) ? c : '-';
  return name;
}

constexpr settings::Format http_path{"a path such as `/health`", [](std::string_view text) {
                                       return text.starts_with('/') &&
                                              settings::formats::word.accepts(text) &&
                                              text.find(' ') == std::string_view::npos;
                                     }};

Strings read_words(const char* key, const core::Value& value, settings::Diagnostics& diagnostics) {
  if (value.kind == core::Value::Kind::list) {
    if (value.items.empty())
      settings::report(diagnostics, "empty-command", std::string("'") + key + "' is an empty list",
                       value.span);
    return settings::read_texts(key, value, settings::formats::text, diagnostics)
        .value_or(Strings{});
  }
  settings::report_type(diagnostics, key, "a list of words", value);
  diagnostics.back().suggestion =
      "no shell reads the command: if the image has one, write `[sh, -c, \"...\"]`";
  return {};
}

ServiceReady read_ready(const core::Value& value, const std::string& service,
                        settings::Diagnostics& diagnostics) {
  static const Strings keys{"port", "http", "command", "timeout"};
  static constexpr settings::OtherName others[]{{"tcp", "write `port: PORT`"},
                                                {"ports", "write `port: PORT`"},
                                                {"path", "write `http: /PATH`, beside `port`"},
                                                {"url", "write `port: PORT, http: /PATH`"},
                                                {"test", "write `command: [...]`"},
                                                {"retries", "write `timeout: 5m`"}};
  ServiceReady ready;
  if (!settings::expect_map("ready", value, diagnostics)) {
    diagnostics.back().suggestion = "as in `ready: {port: 5432}`";
    return ready;
  }
  settings::report_unknown_keys(value, keys, "'ready' of service '" + service + "'", diagnostics,
                                others);
  const auto* port = value.find("port");
  const auto* http = value.find("http");
  const auto* command = value.find("command");
  if (port)
    ready.port = settings::read_count("port", *port, diagnostics, {1, max_port}).value_or(0);
  if (http) ready.http = settings::read_text("http", *http, http_path, diagnostics).value_or("");
  if (command) ready.command = read_words("command", *command, diagnostics);
  if (const auto* timeout = value.find("timeout")) {
    ready.timeout = settings::read_duration("timeout", *timeout, diagnostics);
    if (ready.timeout && *ready.timeout <= Duration::zero())
      settings::report_type(diagnostics, "timeout", "a duration above zero", *timeout);
  }
  if (port && command)
    settings::report(diagnostics, "contradiction", "'port' and 'command' exclude each other",
                     command->span, {"one of them shows that the service is ready"});
  else if (http && !port)
    settings::report(diagnostics, "missing-key", "'http' needs a 'port'", http->span, {},
                     "as in `ready: {port: 8000, http: /health}`");
  else if (!port && !command && !has_misspelt(value, "port") && !has_misspelt(value, "command"))
    settings::report(diagnostics, "missing-key", "'ready' has neither a 'port' nor a 'command'",
                     value.span, {}, "as in `ready: {port: 5432}`");
  return ready;
}

ServiceResources read_service_resources(const core::Value& value, const std::string& service,
                                        settings::Diagnostics& diagnostics) {
  static const Strings keys{"cpu_count", "memory", "shm_size"};
  static constexpr const char* shared = "a service sees the GPUs of its step";
  static constexpr settings::OtherName others[]{{"gpus", shared},
                                                {"gpu_count", shared},
                                                {"devices", shared},
                                                {"accelerator", shared},
                                                {"cpus", "write `cpu_count: 2`"}};
  ServiceResources resources;
  if (!settings::expect_map("resources", value, diagnostics)) return resources;
  settings::report_unknown_keys(value, keys, "'resources' of service '" + service + "'",
                                diagnostics, others);
  if (const auto* cpus = value.find("cpu_count"))
    resources.cpu_count =
        settings::read_number("cpu_count", *cpus, settings::formats::positive, diagnostics);
  if (const auto* memory = value.find("memory"))
    resources.memory = settings::read_bytes("memory", *memory, diagnostics);
  if (const auto* size = value.find("shm_size"))
    resources.shm_size = settings::read_bytes("shm_size", *size, diagnostics);
  return resources;
}

void report_service_keys(const core::Value& body, const std::string& name,
                         settings::Diagnostics& diagnostics) {
  static const Strings keys{"image", "entrypoint", "command", "environment", "ready", "resources"};
  static constexpr const char* all_ports = "the step reaches all ports of a service by its name";
  static constexpr settings::OtherName others[]{
      {"name", "write `image: IMAGE`; the key is the name"},
      {"alias", "the key is the name by which the step reaches it"},
      {"ports", all_ports},
      {"port", "write `ready: {port: PORT}`"},
      {"args", "write `command: [...]`"},
      {"env", "write `environment: {NAME: VALUE}`"},
      {"variables", "write `environment: {NAME: VALUE}`"},
      {"healthcheck", "write `ready: {port: PORT}` or `ready: {command: [...]}`"},
      {"readiness", "write `ready: {port: PORT}` or `ready: {command: [...]}`"},
      {"options", "write `ready: {port: PORT}` or `ready: {command: [...]}`"},
      {"memory", "write `resources: {memory: 2GiB}`"},
      {"volumes", "a service sees the step's inputs and code at the step's own paths"}};
  settings::report_unknown_keys(body, keys, "service '" + name + "'", diagnostics, others);
}

ServiceSpec read_service(const core::Value& key, const core::Value& body,
                         settings::Diagnostics& diagnostics) {
  const auto& name = key.scalar;
  ServiceSpec service;
  if (!settings::expect_map(name, body, diagnostics)) {
    diagnostics.back().suggestion = service_example;
    return service;
  }
  report_service_keys(body, name, diagnostics);
  if (const auto* image = body.find("image"))
    service.image =
        settings::read_text("image", *image, settings::formats::image, diagnostics).value_or("");
  else if (!has_misspelt(body, "image"))
    settings::report(diagnostics, "missing-key", "service '" + name + "' has no 'image'", key.span,
                     {}, service_example);
  if (const auto* words = body.find("entrypoint"))
    service.entrypoint = read_words("entrypoint", *words, diagnostics);
  if (const auto* words = body.find("command"))
    service.command = read_words("command", *words, diagnostics);
  if (const auto* variables = body.find("environment")) {
    Defaults read;
    read_environment(*variables, read, diagnostics);
    service.environment = std::move(read.environment);
  }
  if (const auto* resources = body.find("resources"))
    service.resources = read_service_resources(*resources, name, diagnostics);
  if (const auto* ready = body.find("ready"))
    service.ready = read_ready(*ready, name, diagnostics);
  else if (!has_misspelt(body, "ready"))
    settings::report(diagnostics, "missing-key", "service '" + name + "' has no 'ready'", key.span,
                     {"the step starts once the service is ready"},
                     "`ready: {port: PORT}`, `ready: {port: PORT, http: /PATH}` or `ready: "
                     "{command: [...]}`");
  return service;
}

}  // namespace

Services read_services(const core::Value& value, settings::Diagnostics& diagnostics) {
  Services services;
  if (!settings::expect_map("services", value, diagnostics)) {
    diagnostics.back().suggestion = service_example;
    return services;
  }
  for (const auto& [key, body] : value.members) {
    if (is_service_name(key.scalar)) {
      services.emplace(key.scalar, read_service(key, body, diagnostics));
      continue;
    }
    const auto nearest = nearest_service_name(key.scalar);
    settings::report(diagnostics, "bad-name",
                     "'" + key.scalar.substr(0, 80) + "' cannot be a service's name", key.span,
                     {"the step reaches the service by this name, which has at most 50 lower-case "
                      "letters, digits and `-`, and neither begins nor ends with `-`"},
                     is_service_name(nearest) ? "did you mean '" + nearest + "'?" : "");
  }
  return services;
}

void check_services(const StepSpec& step, const core::Value& written,
                    settings::Diagnostics& diagnostics) {
  const auto& network = step.settings->docker.network;
  if (!step.services.empty() && network &&
      (*network == "host" || network->starts_with("container:")))
    settings::report(diagnostics, "contradiction",
                     "step '" + step.name + "' has services and `network: " + *network + "`",
                     written.span,
                     {"services have a network of their own, in which the step runs, too"},
                     "leave `network` out, or write `network: none` to have no other network");
  for (const auto& [name, service] : step.services)
    for (const auto& [variable, value] : service.environment) {
      const auto is_secret = [&](const SecretSpec& secret) { return secret.name == variable; };
      if (value || step.environment.contains(variable) ||
          std::ranges::any_of(step.secrets, is_secret))
        continue;
      const auto* body = written.find(name);
      const auto* variables = body ? body->find("environment") : nullptr;
      settings::report(diagnostics, "missing-variable",
                       "'" + variable + "' of service '" + name +
                           "' has no value, and the step has no variable or secret of this name",
                       variables ? variables->span : written.span, {},
                       "add it to the step's `environment` or `secrets`");
    }
}

json services_document(const Services& services) {
  json document = json::object();
  for (const auto& [name, service] : services) {
    auto& written = document[name] = {{"image", service.image}};
    if (!service.entrypoint.empty()) written["entrypoint"] = service.entrypoint;
    if (!service.command.empty()) written["command"] = service.command;
    for (const auto& [variable, value] : service.environment)
      written["environment"][variable] = value ? json(*value) : json();
    auto& ready = written["ready"] = json::object();
    if (service.ready.port) ready["port"] = service.ready.port;
    if (!service.ready.http.empty()) ready["http"] = service.ready.http;
    if (!service.ready.command.empty()) ready["command"] = service.ready.command;
    if (service.ready.timeout)
      ready["timeout"] = std::to_string(service.ready.timeout->count()) + "ms";
    const auto& resources = service.resources;
    if (resources.cpu_count) written["resources"]["cpu_count"] = *resources.cpu_count;
    if (resources.memory) written["resources"]["memory"] = *resources.memory;
    if (resources.shm_size) written["resources"]["shm_size"] = *resources.shm_size;
  }
  return document;
}

json services_schema() {
  const auto described = [](json schema, const char* text) {
    schema["description"] = text;
    return schema;
  };
  const auto closed = [](json properties, json required) {
    return json{{"type", "object"},
                {"properties", std::move(properties)},
                {"additionalProperties", false},
                {"required", std::move(required)}};
  };
  const json words{{"type", "array"}, {"minItems", 1}, {"items", {{"type", "string"}}}};
  const json size{{"type", {"string", "integer"}}};
  const json filled{{"type", "string"}, {"pattern", "^\\$\\{params\\..+\\}$"}};
  const json port{{"type", "integer"}, {"minimum", 1}, {"maximum", max_port}};
  const json cpus{{"type", "number"}, {"exclusiveMinimum", 0}};
  json ready = closed(
      {{"port", described({{"anyOf", {port, filled}}},
                          "The service is ready when it accepts connections on this port.")},
       {"http", described({{"type", "string"}, {"pattern", "^/"}},
                          "The service is ready when it answers this path on `port` by HTTP with a "
                          "status below 400.")},
       {"command",
        described(words, "The service is ready when this command ends with 0 in its container.")},
       {"timeout", described(settings::duration_schema(),
                             "Time from the container's start after which the step fails. Default: "
                             "2m.")}},
      json::array());
  json resources = closed(
      {{"cpu_count", described({{"anyOf", {cpus, filled}}}, "CPUs that the service may use.")},
       {"memory", described(size, "Hard limit of the service's memory, `2GiB`.")},
       {"shm_size", described(size, "Size of the service's /dev/shm.")}},
      json::array());
  const json variables{
      {"type", "object"},
      {"additionalProperties", {{"type", {"string", "number", "boolean", "null"}}}}};
  json service = closed(
      {{"image",
        described({{"type", "string"}}, "Image of the service, pulled as parent images are.")},
       {"entrypoint", described(words, "In place of the image's entry point.")},
       {"command", described(words,
                             "In place of the image's command: arguments of its entry "
                             "point, if it has one.")},
       {"environment", described(variables,
                                 "Variables of the service; a variable without a value has that of "
                                 "the step's variable or secret of this name.")},
       {"ready", described(std::move(ready),
                           "How the service shows that it can be used. The step starts once all "
                           "its services are ready.")},
       {"resources", described(std::move(resources), "Limits of the service's container.")}},
      {"image", "ready"});
  json services{{"type", "object"},
                {"additionalProperties", std::move(service)},
                {"propertyNames", {{"pattern", "^[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?$"}}}};
  return described(std::move(services),
                   "Containers that run beside the step while it runs, by the name under which it "
                   "reaches them: `{db: {image: postgres:16, ready: {port: 5432}}}`. They see its "
                   "inputs and code at its own paths, and its GPUs. Their identity is a part of "
                   "the step's key.");
}

}  // namespace pipeline::spec
