/// @file
/// What a run's Jobs and pods are at, kept up to date by two watches for all of them.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "async/gate.hpp"
#include "kubernetes/client.hpp"

namespace pipeline::orchestrators {

class JobInformer {
 public:
  /// @param selector of the run's objects
  JobInformer(kubernetes::Client& client, std::string selector);
  ~JobInformer();
  JobInformer(const JobInformer&) = delete;
  JobInformer& operator=(const JobInformer&) = delete;

  /// The first call begins to watch; each returns when what is there is known. Throws what the
  /// watch ended with.
  async::Task<> ready();

  /// One Job and its pod, as far as they have been seen.
  struct Entry {
    nlohmann::json job,
        pod;  ///< Null: not seen yet. Of several pods the first: the others took its place.
    bool job_gone = false, pod_gone = false;
    std::function<void()> on_change;
  };
  /// From now on until forget(). Stays where it is.
  Entry& entry(const std::string& job);
  void forget(const std::string& job);
  /// What the watch ended with: nothing will change any more.
  std::exception_ptr error() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  ///< Shared with the watches, which may end after this object.
};

}  // namespace pipeline::orchestrators
