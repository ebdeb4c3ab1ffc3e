/// @file
/// The last values that a step has reported, for a line that is shown while it runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pipeline::model {

class LastValues {
 public:
  /// Reads a line of output. Returns true if the line reports a metric or the progress, and nothing
  /// else.
  bool take(std::string_view line);
  bool empty() const { return values_.empty() && progress_.empty(); }
  /// Returns `50 %, loss 0.25, accuracy 0.93 (step 30)`.
  std::string text() const;

 private:
  std::string progress_;
  std::vector<std::pair<std::string, double>> values_;  ///< In the order of the first reports.
  std::optional<std::int64_t> step_;  ///< The training's step of the last metric with a step.
};

}  // namespace pipeline::model
