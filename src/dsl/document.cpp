#include "dsl/document.hpp"

#include <algorithm>
#include <map>

#include "settings/settings.hpp"

namespace pipeline::dsl {
namespace {

using nlohmann::json;

Value scalar(std::string text, bool quoted, Span span) {
  Value value;
  value.kind = Value::Kind::scalar;
  value.scalar = std::move(text);
  value.quoted = quoted;
  value.span = span;
  return value;
}

Value value_of(const json& from, Span span) {
  Value value;
  value.span = span;
  if (from.is_string()) return scalar(from.get<std::string>(), true, span);
  if (from.is_array()) {
    value.kind = Value::Kind::list;
    for (const auto& item : from) value.items.push_back(value_of(item, span));
  } else if (from.is_object()) {
    value.kind = Value::Kind::map;
    for (const auto& [key, item] : from.items()) value.members.push_back({scalar(key, true, span), value_of(item, span)});
  } else if (!from.is_null()) {
    return scalar(from.dump(), false, span);
  }
  return value;
}

/// Builds one map, in order.
class Map {
 public:
  explicit Map(Span span) : span_(span) {
    map_.kind = Value::Kind::map;
    map_.span = span;
  }
  void add(const std::string& key, Value value) { map_.members.push_back({scalar(key, false, span_), std::move(value)}); }
  void add(const std::string& key, const json& value) { add(key, value_of(value, span_)); }
  /// Unless it is empty.
  void add_some(const std::string& key, const json& value) {
    if (!value.empty()) add(key, value);
  }
  bool empty() const { return map_.members.empty(); }
  Value take() { return std::move(map_); }

 private:
  Span span_;
  Value map_;
};

std::string duration(Duration time) { return std::to_string(time.count()) + "ms"; }

json retry_of(const RetrySettings& retry) {
  json object = json::object();
  if (retry.max_retries) object["max_retries"] = *retry.max_retries;
  if (retry.delay) object["delay"] = duration(*retry.delay);
  if (retry.backoff) object["backoff"] = *retry.backoff;
  return object;
}

/// What StepOptions and PipelineOptions have in common.
template <class Options>
void add_common(Map& map, const Options& options) {
  if (options.code) map.add("code", json(options.code.items()));
  json environment = json::object();
  for (const auto& [name, value] : options.environment) environment[name] = value ? json(*value) : json();
  map.add_some("environment", environment);
  json secrets = json::array();
  for (const auto& secret : options.secrets)
    secrets.push_back(secret.file ? json{{"name", secret.name}, {"file", secret.file->string()}} : json(secret.name));
  map.add_some("secrets", secrets);
  Settings settings;
  settings.docker = options.docker;
  settings.resources = options.resources;
  auto written = to_json(settings);
  for (auto group = written.begin(); group != written.end();) group = group->empty() ? written.erase(group) : std::next(group);
  // Of a file, as `requirements: FILE` has it: {"-r FILE"}.
  if (const auto& list = options.docker.requirements.items(); list.size() == 1 && list[0].starts_with("-r "))
    written["docker"]["requirements"] = list[0].substr(3);
  map.add_some("settings", written);
  map.add_some("retry", retry_of(options.retry));
  if (options.timeout) map.add("timeout", json(duration(*options.timeout)));
  if (options.cache) map.add("cache", json(*options.cache));
}

/// A parameter is one value: texts and numbers as they are, all else as JSON in a text.
json parameter_of(const detail::Argument& argument, const json& value) {
  if (argument.is_text || value.is_number() || value.is_boolean()) return value;
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string reference(const AnyArtifact& artifact, const std::string& selector) { return artifact.step + selector + "." + artifact.output; }

Value step_of(const detail::Declaration& step, Span span, const std::string& program) {
  const auto& options = step.options;
  Map map(span);
  map.add_some("description", options.description.empty() ? json() : json(options.description));
  Map axes(span);  // in the order of the arguments, which is that of the instances
  if (options.matrix.is_object())
    for (const auto& [name, values] : options.matrix.items()) axes.add(name, values);
  json matrix = options.matrix, parameters = json::object(), inputs = json::object(), outputs = json::object();
  for (const auto& [name, value] : options.parameters) parameters[name] = value;
  for (const auto& argument : step.arguments) {
    if (argument.slot == detail::Slot::context) continue;
    if (argument.is_axis) {
      json values = json::array();
      for (const auto& value : argument.axis) values.push_back(parameter_of(argument, value));
      axes.add(argument.name, values);
    } else if (argument.slot == detail::Slot::parameter) {
      if (!argument.of_pipeline) parameters[argument.name] = parameter_of(argument, argument.value);
    } else if (!argument.sources.empty()) {
      inputs[argument.name] = reference(argument.sources[0], argument.selector);
      if (argument.selector == "[=]" && matrix.is_null()) matrix = argument.sources[0].step;
    }
  }
  for (const auto& input : step.inputs) inputs[input.name] = input.reference;
  for (const auto& output : step.outputs) outputs[output.name] = output.file_name;
  if (!axes.empty())
    map.add("matrix", axes.take());
  else if (!matrix.is_null())
    map.add("matrix", matrix);
  if (step.entry) {
    auto words = json::array();
    if (!program.empty()) words.push_back(program);
    words.push_back("--pipe-step");
    words.push_back(options.name);
    map.add("command", words);
  } else {
    map.add("command", step.shell ? json(step.words.at(0)) : json(step.words));
  }
  map.add_some("parameters", parameters);
  map.add_some("inputs", inputs);
  map.add_some("outputs", outputs);
  map.add_some("after", json(options.after));
  if (step.entry && !options.code) map.add("code", json::array());
  add_common(map, options);
  return map.take();
}

}  // namespace

Document document_of(const Pipeline& pipeline, const std::string& program) {
  Document document;
  const auto& options = pipeline.options();
  Map root{Span{}};
  root.add("name", json(pipeline.name()));
  if (!options.description.empty()) root.add("description", json(options.description));
  root.add_some("tags", json(options.tags));
  if (options.execution_mode != ExecutionMode::continue_on_failure)
    root.add("execution_mode", json(options.execution_mode == ExecutionMode::fail_fast ? "fail_fast" : "stop_on_failure"));

  const auto report = [&](unsigned step, std::string code, std::string message, std::vector<std::string> notes = {}) {
    document.diagnostics.push_back({std::move(code), std::move(message), Span{step, 1, 1}, std::move(notes), {}});
  };
  json parameters = json::object();
  for (const auto& [name, value] : options.parameters) parameters[name] = value;
  std::map<std::string, unsigned> seen;
  unsigned number = 0;
  for (const auto& step : pipeline.steps()) {
    ++number;
    const auto& name = step.options.name;
    for (const auto& problem : step.problems) report(number, "bad-step", "step '" + name + "': " + problem);
    if (const auto [other, is_new] = seen.emplace(name, number); !is_new)
      report(number, "duplicate-key", "two steps are called '" + name + "'",
             {"the other one is at line " + std::to_string(pipeline.steps()[other->second - 1].where.line()), "give this one a `.name` of its own"});
    for (const auto& argument : step.arguments) {
      if (argument.slot == detail::Slot::gathered && argument.sources.empty())
        report(number, "bad-step", "step '" + name + "' gathers '" + argument.name + "' from no step at all");
      if (!argument.of_pipeline) continue;
      const auto value = parameter_of(argument, argument.value);
      const auto known = parameters.find(argument.name);
      if (known == parameters.end())
        parameters[argument.name] = value;
      else if (*known != value)
        report(number, "contradiction",
               "the parameter '" + argument.name + "' is " + value.dump() + " here, and " + known->dump() + " where it is used before",
               {"make one pl::param() of it, and give that to both"});
    }
  }
  root.add_some("parameters", parameters);
  add_common(root, options);

  Map steps{Span{}};
  number = 0;
  for (const auto& step : pipeline.steps()) {
    ++number;
    if (seen[step.options.name] == number) steps.add(step.options.name, step_of(step, Span{number, 1, 1}, program));
  }
  auto all = steps.take();
  for (auto& [key, body] : all.members) key.span = body.span;
  root.add("steps", std::move(all));
  document.root = root.take();
  return document;
}

namespace {

/// Quoted unless it is a plain word for everybody: no YAML reader may take it for a number, a boolean or syntax.
std::string yaml_text(const Value& value) {
  if (!value.quoted) return value.scalar;
  static const std::vector<std::string> words{"true", "false", "null", "yes", "no", "on", "off", "y", "n", "inf", "nan"};
  auto lower = value.scalar;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const bool plain = !lower.empty() && std::isalpha(static_cast<unsigned char>(lower[0])) && std::ranges::find(words, lower) == words.end() &&
                     lower.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-./=") == lower.npos;
  return plain ? value.scalar : json(value.scalar).dump(-1, ' ', false, json::error_handler_t::replace);  // JSON's strings are YAML's
}

bool is_flat(const Value& value) {
  const auto flat = [](const Value& each) { return each.kind == Value::Kind::scalar || each.kind == Value::Kind::null; };
  return value.kind == Value::Kind::list && std::all_of(value.items.begin(), value.items.end(), flat);
}

void write(const Value& value, std::string& text, std::size_t depth) {
  const std::string indent(depth * 2, ' ');
  switch (value.kind) {
    case Value::Kind::null: text += " null\n"; return;
    case Value::Kind::scalar: text += " " + yaml_text(value) + "\n"; return;
    case Value::Kind::list:
      if (is_flat(value)) {
        text += " [";
        for (std::size_t i = 0; i < value.items.size(); ++i)
          text += (i ? ", " : "") + (value.items[i].kind == Value::Kind::null ? "null" : yaml_text(value.items[i]));
        text += "]\n";
        return;
      }
      text += "\n";
      for (const auto& item : value.items) {
        std::string entry;
        write(item, entry, depth + 1);
        const auto begin = entry.find_first_not_of(" \n");
        text += indent + "- " + entry.substr(begin == entry.npos ? 0 : begin);
      }
      return;
    case Value::Kind::map:
      if (value.members.empty()) {
        text += " {}\n";
        return;
      }
      text += depth ? "\n" : "";
      for (const auto& [key, item] : value.members) {
        text += indent + yaml_text(key) + ":";
        write(item, text, depth + 1);
      }
      return;
  }
}

}  // namespace

std::string to_yaml(const Value& root) {
  std::string text;
  write(root, text, 0);
  return text;
}

}  // namespace pipeline::dsl
