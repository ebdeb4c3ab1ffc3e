/// @file
/// Whether those who drive runs live: processes are looked at, clusters asked.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "cli/context.hpp"

namespace pipeline::cli {

class Drivers {
 public:
  explicit Drivers(Context& context) : context_(context) {}

  enum class Life { lives, gone, unknown };
  /// Of a run that is recorded as running. A cluster is asked once in a few seconds, and is given up for as long if it does not answer.
  Life life_of(const store::RunRecord& run);
  /// As far as it can be known: also if it may do so.
  bool goes_on(const store::RunRecord& run) { return run.status == RunStatus::running && life_of(run) != Life::gone; }
  /// `the Job x in the namespace y of context z: its pod w`, with why that does not begin, or what it ended with.
  std::string described(const store::RunRecord& run);
  /// Why it is unknown.
  const std::string& silence() const { return silence_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Answer {
    Life life;
    Clock::time_point at;
  };
  Context& context_;
  std::map<std::string, Answer> answers_;                                             ///< By run.
  std::map<std::pair<std::string, std::string>, Clock::time_point> silent_clusters_;  ///< By context and namespace.
  std::string silence_;
};

/// `process 1234`, `the Job x in the namespace y`
std::string name_of(const store::Driver& driver);

}  // namespace pipeline::cli
