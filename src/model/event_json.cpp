#include "model/event_json.hpp"

#include "model/structured_line.hpp"

#include <nlohmann/json.hpp>

namespace pipeline::model {

namespace {

using nlohmann::json;

void add_failure(json& object, const std::optional<Failure>& failure) {
  if (failure) object["failure"] = to_json(*failure);
}

json convert(const event::RunStarted& e) {
  json object = {{"event", "run_started"},
                 {"run", e.run},
                 {"pipeline", e.pipeline},
                 {"orchestrator", e.orchestrator},
                 {"steps", e.steps}};
  for (const auto& [name, count] : e.instances) object["instances"][name] = count;
  return object;
}

json convert(const event::BuildStarted& e) {
  return {{"event", "build_started"}, {"image", e.image}, {"steps", e.steps}, {"reason", e.reason}};
}

json convert(const event::BuildProgress& e) {
  return {{"event", "build_progress"}, {"image", e.image}, {"text", e.text}};
}

json convert(const event::BuildFinished& e) {
  json object = {{"event", "build_finished"}, {"image", e.image}, {"took_ms", e.took.count()}};
  if (!e.id.empty()) object["id"] = e.id;
  add_failure(object, e.failure);
  return object;
}

json convert(const event::StepStarted& e) {
  json object = {
      {"event", "step_started"}, {"step", e.step}, {"attempt", e.attempt}, {"image", e.image}};
  for (const auto& gpu : e.gpus) {
    auto& entry = object["gpus"].emplace_back(
        json{{"uuid", gpu.uuid}, {"index", gpu.index}, {"model", gpu.model}});
    if (gpu.slice) entry["slice"] = *gpu.slice;
  }
  return object;
}

json convert(const event::StepLog& e) {
  json object = {{"event", "step_log"},
                 {"step", e.step},
                 {"attempt", e.attempt},
                 {"stream", e.stream == Stream::out ? "stdout" : "stderr"}};
  if (e.rank) object["rank"] = *e.rank;
  if (const auto structured = parse_structured(e.line)) object["data"] = *structured;
  object["line"] = shown_line(e.line);
  return object;
}

json convert(const event::StepProgress& e) {
  return {{"event", "step_progress"}, {"step", e.step}, {"attempt", e.attempt}, {"row", e.row}};
}

json convert(const event::StepRetried& e) {
  json object = {{"event", "step_retried"},
                 {"step", e.step},
                 {"attempt", e.attempt},
                 {"failure", to_json(e.failure)},
                 {"delay_ms", e.delay.count()}};
  if (e.memory) object["memory"] = *e.memory;
  return object;
}

json convert(const event::StepWaits& e) {
  return {{"event", "step_waits"}, {"step", e.step}, {"reason", e.reason}};
}

json convert(const event::StepFinished& e) {
  json object = {{"event", "step_finished"},
                 {"step", e.step},
                 {"status", to_string(e.status)},
                 {"attempts", e.attempts},
                 {"took_ms", e.took.count()}};
  add_failure(object, e.failure);
  if (!e.reused_from.empty()) object["reused_from"] = e.reused_from;
  if (!e.reason.empty()) object["reason"] = e.reason;
  return object;
}

json convert(const event::Notice& e) {
  json object = {{"event", "notice"}, {"text", e.text}};
  if (!e.step.empty()) object["step"] = e.step;
  return object;
}

json convert(const event::StepExpanded& e) {
  json object = {
      {"event", "step_expanded"}, {"step", e.step}, {"instances", e.instances}, {"steps", e.steps}};
  if (e.round) object["round"] = *e.round;
  return object;
}

json convert(const event::RunFinished& e) {
  return {{"event", "run_finished"},
          {"run", e.run},
          {"status", to_string(e.status)},
          {"took_ms", e.took.count()}};
}

}  // namespace

json to_json(const Failure& failure) {
  json object = {{"kind", to_string(failure.kind)}, {"message", failure.message}};
  if (!failure.hints.empty()) object["hints"] = failure.hints;
  if (!failure.details.empty()) object["details"] = failure.details;
  return object;
}

json to_json(const Event& event) {
  return std::visit([](const auto& e) { return convert(e); }, event);
}

std::string to_json_line(const Event& event) {
  return to_json(event).dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace pipeline::model
