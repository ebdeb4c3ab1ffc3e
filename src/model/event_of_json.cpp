#include <map>
#include <string_view>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "model/event_json.hpp"

namespace pipeline::model {
namespace {

using nlohmann::json;

/// Returns the enumerator with this name. Throws json::exception if there is none.
/// @param last the last enumerator; the enumeration's values are 0 to `last`
template <class Enumeration>
Enumeration value_named(const json& name, Enumeration last) {
  const auto& wanted = name.get_ref<const std::string&>();
  for (int i = 0; i <= static_cast<int>(last); ++i)
    if (to_string(static_cast<Enumeration>(i)) == wanted) return static_cast<Enumeration>(i);
  throw json::other_error::create(501, "unknown value " + wanted, nullptr);
}

std::string text_of(const json& object, const char* key) {
  return object.value(key, std::string());
}

std::chrono::milliseconds duration_of(const json& object, const char* key) {
  return std::chrono::milliseconds(core::integer_of<std::int64_t>(object.at(key)));
}

Failure read_failure(const json& object) {
  return {value_named(object.at("kind"), FailureKind::infrastructure),
          object.at("message").get<std::string>(),
          object.value("hints", std::vector<std::string>()),
          object.value("details", std::vector<std::string>())};
}

std::optional<Failure> optional_failure(const json& object) {
  const auto found = object.find("failure");
  return found == object.end() ? std::nullopt : std::optional(read_failure(*found));
}

Event run_started(const json& object) {
  event::RunStarted e{object.at("run").get<std::string>(), object.at("pipeline").get<std::string>(),
                      text_of(object, "orchestrator"),
                      core::integer_of<std::size_t>(object.at("steps"))};
  if (const auto instances = object.find("instances"); instances != object.end())
    for (const auto& [name, count] : instances->items())
      e.instances.emplace_back(name, core::integer_of<std::size_t>(count));
  return e;
}

Event build_started(const json& object) {
  return event::BuildStarted{object.at("image").get<std::string>(),
                             object.at("steps").get<std::vector<std::string>>(),
                             text_of(object, "reason")};
}

Event build_progress(const json& object) {
  return event::BuildProgress{object.at("image").get<std::string>(), text_of(object, "text")};
}

Event build_finished(const json& object) {
  return event::BuildFinished{object.at("image").get<std::string>(), text_of(object, "id"),
                              duration_of(object, "took_ms"), optional_failure(object)};
}

Event step_started(const json& object) {
  event::StepStarted e{object.at("step").get<std::string>(),
                       core::integer_of<unsigned>(object.at("attempt")),
                       text_of(object, "image"),
                       {}};
  if (const auto gpus = object.find("gpus"); gpus != object.end())
    for (const auto& gpu : *gpus) {
      e.gpus.push_back({gpu.at("uuid").get<std::string>(),
                        core::integer_of<unsigned>(gpu.at("index")), text_of(gpu, "model")});
      if (const auto slice = gpu.find("slice"); slice != gpu.end())
        e.gpus.back().slice = core::integer_of<unsigned>(*slice);
    }
  return e;
}

Event step_log(const json& object) {
  event::StepLog e{
      object.at("step").get<std::string>(), core::integer_of<unsigned>(object.at("attempt")),
      text_of(object, "stream") == "stderr" ? Stream::err : Stream::out, text_of(object, "line")};
  if (object.contains("rank")) e.rank = core::integer_of<unsigned>(object.at("rank"));
  return e;
}

Event step_progress(const json& object) {
  return event::StepProgress{object.at("step").get<std::string>(),
                             core::integer_of<unsigned>(object.at("attempt")),
                             text_of(object, "row")};
}

Event step_retried(const json& object) {
  event::StepRetried e{object.at("step").get<std::string>(),
                       core::integer_of<unsigned>(object.at("attempt")),
                       read_failure(object.at("failure")), duration_of(object, "delay_ms")};
  if (object.contains("memory")) e.memory = core::integer_of<std::uint64_t>(object.at("memory"));
  return e;
}

Event step_waits(const json& object) {
  return event::StepWaits{object.at("step").get<std::string>(), text_of(object, "reason")};
}

Event step_finished(const json& object) {
  return event::StepFinished{object.at("step").get<std::string>(),
                             value_named(object.at("status"), StepStatus::cancelled),
                             core::integer_of<unsigned>(object.at("attempts")),
                             duration_of(object, "took_ms"),
                             optional_failure(object),
                             text_of(object, "reused_from"),
                             text_of(object, "reason")};
}

Event notice(const json& object) {
  return event::Notice{text_of(object, "step"), object.at("text").get<std::string>()};
}

Event step_expanded(const json& object) {
  event::StepExpanded e{object.at("step").get<std::string>(),
                        core::integer_of<std::size_t>(object.at("instances")),
                        core::integer_of<std::size_t>(object.at("steps"))};
  if (object.contains("round")) e.round = core::integer_of<unsigned>(object.at("round"));
  return e;
}

Event run_finished(const json& object) {
  return event::RunFinished{object.at("run").get<std::string>(),
                            value_named(object.at("status"), RunStatus::interrupted),
                            duration_of(object, "took_ms")};
}

}  // namespace

std::optional<Event> event_of(const json& object) {
  static const std::map<std::string_view, Event (*)(const json&)> readers{
      {"run_started", run_started},
      {"build_started", build_started},
      {"build_progress", build_progress},
      {"build_finished", build_finished},
      {"step_started", step_started},
      {"step_log", step_log},
      {"step_progress", step_progress},
      {"step_retried", step_retried},
      {"step_waits", step_waits},
      {"step_finished", step_finished},
      {"notice", notice},
      {"step_expanded", step_expanded},
      {"run_finished", run_finished}};
  try {
    const auto reader = readers.find(object.at("event").get_ref<const std::string&>());
    return reader == readers.end() ? std::nullopt : std::optional(reader->second(object));
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

}  // namespace pipeline::model
