#include "report/run_values.hpp"

#include <cstdio>

#include "core/bounded_json.hpp"
#include "core/diagnostic.hpp"
#include "core/json_member.hpp"
#include "core/quantity.hpp"
#include "core/text.hpp"

namespace pipeline::report {

using nlohmann::json;

namespace {

/// Returns the duration of the run in seconds; null if the run has not ended, or if its driver was
/// killed, so that its end is not known.
json seconds_of(const store::RunRecord& run) {
  if (run.status == RunStatus::running || run.ended == WallTime{}) return {};
  return static_cast<double>(run.took.count()) / 1000;
}

}  // namespace

RunValues::RunValues(store::RunStore& store, store::RunRecord run,
                     const nlohmann::json& run_parameters, const store::StepRecord& step,
                     std::vector<store::MetricRecord> metrics)
    : store_(store),
      run_(std::move(run)),
      step_metrics_(std::move(metrics)),
      run_parameters_(&run_parameters),
      steps_(std::vector<store::StepRecord>{step}) {}

const std::vector<store::StepRecord>& RunValues::steps() {
  if (!steps_) steps_ = store_.runs().steps(run_.id);
  return *steps_;
}

const std::map<std::string, json>& RunValues::parameters() {
  if (parameters_) return *parameters_;
  std::map<std::string, json> found;
  for (const auto& step : steps()) {
    const auto object = core::parse_json(step.parameters);
    if (!object.is_object()) continue;
    for (const auto& [name, value] : object.items()) {
      const auto [at, is_new] = found.emplace(name, value);
      if (!is_new && at->second != value) at->second = json();  // The steps have different values.
    }
  }
  auto& values = parameters_.emplace();
  for (auto& [name, value] : found)
    if (!value.is_null()) values.emplace(name, std::move(value));
  if (is_of_step()) return values;
  const auto of_run = core::parse_json(run_.parameters);
  if (!of_run.is_object()) return values;
  for (const auto& [name, value] : of_run.items()) values[name] = value;
  return values;
}

const std::map<std::string, json>& RunValues::metrics() {
  if (metrics_) return *metrics_;
  auto& values = metrics_.emplace();
  std::map<std::string, WallTime> latest;
  const auto add = [&](const std::vector<store::MetricRecord>& records) {
    for (const auto& metric : records) {
      const auto value = store::number_json(metric.last.value);
      values[metric.step + "." + metric.name] = value;
      const auto [at, is_new] = latest.emplace(metric.name, metric.last.time);
      if (!is_new && at->second > metric.last.time) continue;
      at->second = metric.last.time;
      values[metric.name] = value;
    }
  };
  if (is_of_step())
    add(step_metrics_);
  else
    add(store_.metrics().list(run_.id));
  return values;
}

const std::map<std::string, json>& RunValues::usage() {
  if (usage_) return *usage_;
  auto& values = usage_.emplace();
  const auto add = [&](const char* name, const auto& value, double unit) {
    if (!value) return;
    auto& sum = values.emplace(name, 0.0).first->second;
    if constexpr (requires { value->count(); })
      sum = sum.template get<double>() + static_cast<double>(value->count()) / unit;
    else
      sum = sum.template get<double>() + static_cast<double>(*value) / unit;
  };
  constexpr double microseconds = 1e6;
  for (const auto& step : steps()) {
    if (step.attempts == 0) continue;
    for (const auto& attempt : store_.attempts().list(run_.id, step.name)) {
      const auto& used = attempt.usage;
      add("cpu", used.user, microseconds);
      add("cpu", used.system, microseconds);
      add("read", used.read, 1);
      add("written", used.written, 1);
      if (!used.peak_memory) continue;
      auto& memory = values.emplace("memory", 0).first->second;
      memory = std::max(memory.get<std::uint64_t>(), *used.peak_memory);
    }
  }
  return values;
}

std::map<std::string, json> RunValues::properties() const {
  std::map<std::string, json> all{
      {"id", run_.id},
      {"pipeline", run_.pipeline},
      {"status", is_of_step() ? to_string(steps_->front().status) : to_string(run_.status)},
      {"orchestrator", run_.orchestrator},
      {"started", core::format_time(run_.started)},
      {"seconds", seconds_of(run_)},
      {"steps", run_.steps},
      {"reused", run_.cached},
      {"failed", run_.failed},
      {"commit", run_.git_commit},
      {"tags", tags_of(run_)},
      {"note", run_.note}};
  return all;
}

json RunValues::value(const std::string& name) {
  const auto dot = name.find('.');
  const auto group = name.substr(0, dot);
  const auto rest = dot == name.npos ? std::string() : name.substr(dot + 1);
  const auto find = [&](const std::map<std::string, json>& values) {
    const auto found = values.find(rest);
    return found == values.end() ? json() : found->second;
  };
  if (group == "params") {
    const auto parts = core::split(rest, '.');  // `optimizer.layers.0` looks into a map or list.
    const auto part_of = [&](const json* at) {
      for (std::size_t i = 1; at && i < parts.size(); ++i) at = core::member(*at, parts[i]);
      return at ? *at : json();
    };
    const auto& all = parameters();
    const auto found = all.find(std::string(parts.front()));
    auto own = part_of(found == all.end() ? nullptr : &found->second);
    // A step that does not override a parameter of the run has the run's value.
    return own.is_null() && is_of_step() ? part_of(core::member(*run_parameters_, parts.front()))
                                         : own;
  }
  if (group == "metrics") return find(metrics());
  if (group == "usage") return find(usage());
  const auto all = properties();
  if (group == "run" && all.contains(rest)) return find(all);
  if (dot == name.npos && all.contains(name)) return all.at(name);
  std::vector<std::string> names{"params." + rest, "metrics." + rest, "usage.cpu", "usage.memory"};
  for (const auto& [property, ignored] : all)
    names.push_back(dot == name.npos ? property : "run." + property);
  throw core::InputError("a run has no value '" + name + "'",
                         core::did_you_mean(name, names).empty()
                             ? "name one such as params.NAME, metrics.NAME, metrics.STEP.NAME, "
                               "usage.cpu, usage.memory, run.status or run.seconds"
                             : core::did_you_mean(name, names));
}

json declared_steps(store::RunStore& store, const store::RunRecord& run) {
  const auto& id = run.same_as.empty() ? run.id : run.same_as;
  auto steps = core::parse_json(store.key_values().find(store::declared_kind, id).value_or("{}"));
  return steps.is_object() ? steps : json::object();
}

std::string live_status(const store::RunStore& store, const store::RunRecord& run) {
  if (run.status != RunStatus::running) return std::string(to_string(run.status));
  switch (store.drivers().liveness(run)) {
    case store::Liveness::dead: return "died";
    case store::Liveness::unknown: return "unknown";
    case store::Liveness::alive: break;
  }
  return "running";
}

std::string tags_of(const store::RunRecord& run) {
  std::string text;
  for (const auto& tag : run.tags) text += (text.empty() ? "" : ", ") + tag;
  return text;
}

std::string shown_value(const json& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_number_float()) return value.dump(-1, ' ', false, json::error_handler_t::replace);
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value.get<double>());
  return text;
}

std::string shown_value_of(const std::string& name, const json& value) {
  const bool is_bytes = name == "usage.memory" || name == "usage.read" || name == "usage.written";
  if (!is_bytes || !value.is_number()) return shown_value(value);
  return core::format_bytes(static_cast<std::uint64_t>(value.get<double>()));
}

bool is_before(const json& a, const json& b) {
  const auto rank = [](const json& value) {
    return value.is_number() ? 0 : value.is_null() ? 2 : 1;
  };
  if (rank(a) != rank(b)) return rank(a) < rank(b);
  if (a.is_number()) return a.get<double>() < b.get<double>();
  return shown_value(a) < shown_value(b);
}

}  // namespace pipeline::report
