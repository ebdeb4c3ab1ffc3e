/// @file
/// Parses a stream of JSON values, one a line, that arrives in pieces.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/lines.hpp"

namespace pipeline::docker {

class JsonLines {
 public:
  explicit JsonLines(std::function<void(const nlohmann::json&)> on_value)
      : on_value_(std::move(on_value)) {}
  void feed(std::string_view bytes) {
    lines_.feed(bytes, [this](std::string_view line) { take(line); });
  }
  /// Ends the stream. The last line may lack its line end. Invalid JSON is skipped.
  void finish() {
    take(lines_.rest());
    lines_.clear();
  }

 private:
  void take(std::string_view line) {
    const auto value = core::parse_json(line);
    if (!value.is_discarded()) on_value_(value);
  }
  std::function<void(const nlohmann::json&)> on_value_;
  core::Lines lines_;
};

}  // namespace pipeline::docker
