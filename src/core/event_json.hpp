/// @file
/// Events as JSON, one object each: what `--output json` prints, a line an event.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <pipeline/events.hpp>

namespace pipeline::core {

/// `{"event": "step_finished", "step": "train", "status": "succeeded", "attempts": 1, "took_ms":
/// 1234}`. Fields that say nothing (no failure, no run that it was reused from) are left out; bytes
/// that are no UTF-8 become U+FFFD when the object is dumped with error_handler_t::replace.
nlohmann::json to_json(const Event& event);

/// `{"kind": "timed_out", "message": ..., "hints": [...], "details": [...]}`
nlohmann::json to_json(const Failure& failure);

/// The event as one line of JSON, without its end; never throws for what is in the texts.
std::string to_json_line(const Event& event);

}  // namespace pipeline::core
