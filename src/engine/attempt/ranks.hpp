/// @file
/// The processes of an attempt of a step with nodes, by their ranks.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "orchestrators/gang.hpp"

namespace pipeline::engine {

class Ranks {
 public:
  /// Runs the attempt as a Gang.
  async::Task<orchestrators::AttemptResult> run(orchestrators::AttemptRunner& runner,
                                                const orchestrators::Attempt& attempt);
  /// Returns Gang::waits() while it runs.
  async::Task<std::vector<std::string>> waits() const;
  /// Takes the rank out of the line, and keeps the line as one of its last.
  void take(event::StepLog& log);
  /// Returns the last lines of the process that failed first; null if none did.
  const std::deque<std::string>* tail_of_failed() const;

 private:
  const orchestrators::Gang* running_ = nullptr;
  std::map<unsigned, std::deque<std::string>> tails_;
  std::optional<unsigned> failed_;
};

}  // namespace pipeline::engine
