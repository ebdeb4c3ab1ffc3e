/// @file
/// Converts events to JSON objects; `--output json` prints one a line.
#pragma once

#include <optional>

#include <nlohmann/json_fwd.hpp>

#include <pipeline/events.hpp>

namespace pipeline::model {

/// Returns, for example, `{"event": "step_finished", "step": "train", "status": "succeeded",
/// "attempts": 1, "took_ms": 1234}`. Empty fields, such as an absent failure, are omitted.
/// Invalid UTF-8 becomes U+FFFD if the object is dumped with error_handler_t::replace.
nlohmann::json to_json(const Event& event);

/// Returns, for example, `{"kind": "timed_out", "message": ..., "hints": [...], "details": [...]}`.
nlohmann::json to_json(const Failure& failure);

/// Returns the event as one line of JSON without a line end; never throws, whatever the texts
/// contain.
std::string to_json_line(const Event& event);

/// Returns the event of an object that to_json() has made; nothing if the object is not an event.
/// Unknown members of the object are ignored.
std::optional<Event> event_of(const nlohmann::json& object);

}  // namespace pipeline::model
