/// @file
/// Those who drive runs: whether they live, and how far they are where they share no files with us.
/// Processes are looked at, clusters and buckets asked.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "detached/driver_context.hpp"
#include "store/run_store.hpp"

namespace pipeline::detached {

class Drivers {
 public:
  Drivers(DriverContext context, store::RunStore& runs);
  ~Drivers();

  /// The run as far as it is by now. Costs nothing where its driver shares the state folder with
  /// us.
  void update(store::RunRecord& run);
  /// Of a run that we hold the Lease of: all that a driver has saved of it elsewhere is here then,
  /// and not there any more.
  void bring_home(store::RunRecord& run);

  using Liveness = store::Liveness;
  /// Of a run that is recorded as running. A cluster is asked once in a few seconds, and is given
  /// up for as long if it does not answer. What the driver has saved elsewhere is brought here
  /// first: by that the run may have ended.
  Liveness liveness_of(store::RunRecord& run);
  /// As far as it can be known: also if it may do so.
  bool goes_on(store::RunRecord& run) {
    return run.status == RunStatus::running && liveness_of(run) != Liveness::dead &&
           run.status == RunStatus::running;
  }
  /// `the Job x in the namespace y of context z: its pod w`, with why that does not begin, or what
  /// it ended with.
  std::string described(store::RunRecord& run);
  /// Why it is unknown.
  const std::string& silence() const { return silence_; }
  /// The error for a run whose driver is unknown to live.
  core::EnvironmentError not_known(const store::RunRecord& run) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Answer {
    Liveness life;
    Clock::time_point at;
  };
  struct Elsewhere;
  Liveness ask(const store::RunRecord& run);
  Elsewhere& elsewhere_of(const store::RunRecord& run);
  void bring_news(store::RunRecord& run, bool is_gone);
  void bring(store::RunRecord& run, Elsewhere& elsewhere);

  DriverContext context_;
  store::RunStore& runs_;
  std::map<std::string, std::unique_ptr<Elsewhere>> elsewhere_;  ///< By run.
  std::map<std::string, Answer> answers_;                        ///< By run.
  std::map<std::pair<std::string, std::string>, Clock::time_point>
      silent_clusters_;  ///< By context and namespace.
  std::string silence_;
};

/// `process 1234`, `process 1234 on the machine m`, `the Job x in the namespace y`
std::string name_of(const store::Driver& driver);

}  // namespace pipeline::detached
