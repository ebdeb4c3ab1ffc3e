/// @file
/// A Lease (coordination.k8s.io/v1), which lets one process at a time do some work.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "kubernetes_api/client.hpp"

namespace pipeline::kubernetes_api {

/// Times of a Lease. The defaults are those of Kubernetes' own components.
struct LeaseTerms {
  /// A holder that has not renewed for this time loses the Lease to the next process that wants it.
  std::chrono::milliseconds duration{15'000};
  /// A holder that could not renew for this time gives up.
  std::chrono::milliseconds deadline{10'000};
  /// Time between two renewals.
  std::chrono::milliseconds pause{2'000};
};

class Lease {
 public:
  /// @param holder identity of this process; must be unique
  Lease(Client& client, std::string name, std::string holder, LeaseTerms terms = {});

  /// Returns when this process holds the Lease: at once if it is free, otherwise when its holder
  /// has released it or has not renewed it for too long, by this machine's clock.
  /// @param on_wait called once with the holder if the Lease is not free
  async::Task<> acquire(std::function<void(const std::string&)> on_wait = {});
  /// Renews the Lease until `stop` is stopped, and creates the Lease again if it was deleted.
  /// Returns false if the Lease is lost: another process may hold it.
  async::Task<bool> keep(core::CancelSource& stop);
  /// Returns false if the Lease was not renewed within the terms' deadline, for example in a
  /// process that was suspended. Another process may then hold it, even if keep() has not noticed.
  /// Call this before each write that only the holder may do.
  bool is_fresh() const { return std::chrono::steady_clock::now() - renewed_ < terms_.deadline; }
  /// Releases the Lease, so that the next process need not wait.
  async::Task<> release();
  async::Task<> remove();

  /// `metadata.ownerReferences` of a Lease that this object creates: the cluster garbage-collects
  /// the Lease with the last of its owners. Null: none.
  nlohmann::json owners;
  /// Called with each new message that another process left for the holder (leave_message()).
  std::function<void(const std::string&)> on_message;

 private:
  async::Task<bool> create();
  async::Task<bool> take(nlohmann::json lease);
  void take_message(const nlohmann::json& lease);
  std::string path() const { return client_.path("coordination.k8s.io/v1", "leases", name_); }

  Client& client_;
  const std::string name_, holder_;
  const LeaseTerms terms_;
  std::string last_message_;
  std::chrono::steady_clock::time_point renewed_;  ///< When the last successful renewal was sent.
};

/// Leaves a message for the current or next holder of the Lease, which reads it with its next
/// renewal. Creates a Lease without holder if there is none.
/// @param owners as Lease::owners, for a Lease that is created
async::Task<> leave_message(Client& client, std::string name, std::string message,
                            nlohmann::json owners = {});

/// The holder of a Lease; empty if there is no holder or no Lease.
struct LeaseHolder {
  std::string name;
  std::string renewed;  ///< Time of the last renewal; changes as long as the holder is alive.
};
async::Task<LeaseHolder> holder_of(Client& client, std::string name);

}  // namespace pipeline::kubernetes_api
