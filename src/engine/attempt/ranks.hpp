/// @file
/// The processes of an attempt of a step with nodes, by their ranks.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/cancel.hpp"
#include "engine/attempt/stall_watch.hpp"
#include "orchestrators/gang.hpp"

namespace pipeline::engine {

class Ranks {
 public:
  /// Runs the attempt as a Gang: all processes start together, and the first failure ends the
  /// others. `silence` counts progress of all ranks as if the attempt had printed something.
  async::Task<orchestrators::AttemptResult> run(orchestrators::AttemptRunner& runner,
                                                const orchestrators::Attempt& attempt,
                                                StallWatch& silence);
  /// Returns Gang::waits() while run() is in progress, else no lines.
  async::Task<std::vector<std::string>> waits() const;
  /// Returns the process of the rank, for AttemptRunner::ask().
  orchestrators::RunningProcess process_of(unsigned rank,
                                           const orchestrators::Attempt& attempt) const;
  /// Moves the rank before the line into `log.rank`, and keeps the line among the last ones of that
  /// rank.
  void take(event::StepLog& log);
  /// Returns the last lines of the process that failed first; null if none did.
  const std::deque<std::string>* tail_of_failed() const;

 private:
  async::Task<> watch_progress(StallWatch& silence);

  const orchestrators::Gang* running_ = nullptr;       ///< Null outside of run().
  core::CancelSource over_;                            ///< Stopped at the end of the attempt.
  std::map<unsigned, std::deque<std::string>> tails_;  ///< The last lines of each rank.
  std::optional<unsigned> failed_;                     ///< The rank that failed first.
};

}  // namespace pipeline::engine
