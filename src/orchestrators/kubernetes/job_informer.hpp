/// @file
/// Caches the state of a run's Jobs and pods, from two watches, as client-go's informers do.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "kubernetes_api/client.hpp"

namespace pipeline::orchestrators::kubernetes {

/// Names a Job and one of its pods: the only one, or that of an index.
struct PodOfJob {
  std::string job;
  std::optional<unsigned> index = {};
  auto operator<=>(const PodOfJob&) const = default;
};
/// Returns the index of an Indexed Job's pod; nothing for another pod.
std::optional<unsigned> index_of(const nlohmann::json& pod);

class JobInformer {
 public:
  /// @param selector label selector of the run's objects
  JobInformer(kubernetes_api::Client& client, std::string selector);
  ~JobInformer();
  JobInformer(const JobInformer&) = delete;
  JobInformer& operator=(const JobInformer&) = delete;

  /// The first call starts the watches; each call returns when existing objects are known, or
  /// `stop` is stopped. Throws the error that ended a watch.
  async::Task<> ready(core::CancelSource& stop);

  /// The state of a Job and its pod, as far as it was observed.
  struct Entry {
    /// Null before they are seen. If the Job has had several pods, `pod` is the first; the others
    /// replaced it.
    nlohmann::json job, pod;
    bool job_gone = false, pod_gone = false;  ///< The object was seen, and was deleted.
    std::function<void()> on_change;
  };
  /// Returns the entry, kept up to date until forget(). Its address is stable.
  Entry& entry(const PodOfJob& pod);
  /// Removes an entry.
  void forget(const PodOfJob& pod);
  /// Returns the number of entries.
  std::size_t size() const;
  /// Returns the cluster's nodes (nodes_of()), at most half a minute old; null while another call
  /// asks for them the first time.
  async::Task<nlohmann::json> nodes();
  /// Returns the error that ended a watch, after which entries do not change; null without one.
  std::exception_ptr error() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  ///< Shared with the watches, which may end after this object.
};

}  // namespace pipeline::orchestrators::kubernetes
