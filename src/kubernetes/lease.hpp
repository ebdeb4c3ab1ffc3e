/// @file
/// A Lease (coordination.k8s.io/v1): of several processes that could do something, one does it.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "kubernetes/client.hpp"

namespace pipeline::kubernetes {

/// Kubernetes' own components have these.
struct LeaseTerms {
  std::chrono::milliseconds duration{
      15'000};  ///< Whoever has been silent for so long has lost it to the next who wants it ...
  std::chrono::milliseconds deadline{10'000};  ///< ... and gives up himself some time before.
  std::chrono::milliseconds pause{2'000};      ///< Between two renewals.
};

class Lease {
 public:
  /// @param holder who we are: nobody else is called that
  Lease(Client& client, std::string name, std::string holder, LeaseTerms terms = {});

  /// Returns when it is ours: at once where nobody has it, else when its holder has let go of it,
  /// or has been silent for too long by our own clock.
  /// @param on_wait called once if that takes time, with the holder
  async::Task<> acquire(std::function<void(const std::string&)> on_wait = {});
  /// Renews it until it is told to stop, and makes it again if it was deleted. False: it is lost,
  /// and another may have it by now.
  async::Task<bool> keep(core::CancelSource& stop);
  /// False once it has not been renewed for the terms' deadline, as in a process that was stopped
  /// for a while: another may have it by now, whatever keep() has noticed. To be asked before each
  /// write that the holder alone may do.
  bool is_fresh() const { return std::chrono::steady_clock::now() - renewed_ < terms_.deadline; }
  /// The next one need not wait.
  async::Task<> release();
  async::Task<> remove();

  /// `metadata.ownerReferences` of a Lease that it makes: with the last of them the cluster removes
  /// it. Null: none.
  nlohmann::json owners;
  /// Called with what others have left for whoever holds it (leave_word()), once for each new word.
  std::function<void(const std::string&)> on_signal;

 private:
  async::Task<bool> create();
  async::Task<bool> take(nlohmann::json lease);
  void hear(const nlohmann::json& lease);
  std::string path() const { return client_.path("coordination.k8s.io/v1", "leases", name_); }

  Client& client_;
  const std::string name_, holder_;
  const LeaseTerms terms_;
  std::string heard_;
  std::chrono::steady_clock::time_point renewed_;  ///< When the last successful renewal was sent.
};

/// For whoever holds the Lease, or takes it next: heard with the next renewal. Makes a Lease that
/// nobody holds where there is none.
/// @param owners see Lease
async::Task<> leave_word(Client& client, std::string name, std::string word,
                         nlohmann::json owners = {});

/// What a Lease says of its holder; empty if it has none, or there is no Lease.
struct LeaseHolder {
  std::string name;
  std::string renewed;  ///< Changes as long as he lives.
};
async::Task<LeaseHolder> holder_of(Client& client, std::string name);

}  // namespace pipeline::kubernetes
