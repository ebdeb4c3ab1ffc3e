/// @file
/// A stream of JSON values, one a line, that comes in pieces.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace pipeline::docker {

class JsonLines {
 public:
  explicit JsonLines(std::function<void(const nlohmann::json&)> on_value)
      : on_value_(std::move(on_value)) {}
  void feed(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto end = bytes.find('\n');
      if (end == bytes.npos) {
        line_ += bytes;
        return;
      }
      line_ += bytes.substr(0, end);
      bytes.remove_prefix(end + 1);
      finish();
    }
  }
  /// The last line may lack its end. What is no JSON is left out.
  void finish() {
    auto value = nlohmann::json::parse(line_, nullptr, false);
    line_.clear();
    if (!value.is_discarded()) on_value_(value);
  }

 private:
  std::function<void(const nlohmann::json&)> on_value_;
  std::string line_;
};

}  // namespace pipeline::docker
