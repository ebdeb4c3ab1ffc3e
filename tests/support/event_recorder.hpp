/// @file
/// Event sinks for tests: EventRecorder keeps all events, Silent ignores them.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include <pipeline/events.hpp>

namespace pipeline::test {

class EventRecorder : public EventSink {
 public:
  void emit(const Event& event) override { events.push_back(event); }

  /// Returns the events of one kind, in order.
  template <class Kind>
  std::vector<Kind> of() const {
    std::vector<Kind> found;
    for (auto& event : events)
      if (auto* one = std::get_if<Kind>(&event)) found.push_back(*one);
    return found;
  }

  std::vector<Event> events;
};

class Silent : public EventSink {
 public:
  void emit(const Event&) override {}
};

}  // namespace pipeline::test
