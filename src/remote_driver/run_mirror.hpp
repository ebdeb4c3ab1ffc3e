/// @file
/// A copy of the runs that drivers save to a remote store, for those who only look at them.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "remote_driver/run_replica.hpp"

namespace pipeline::remote_driver {

class RunMirror {
 public:
  /// @param folder the state folder of the copy
  RunMirror(asio::io_context& loop, const settings::RemoteStoreSettings& remote,
            const std::filesystem::path& folder);

  /// Fetches what drivers have saved since the last call. Runs that the store no longer has stay.
  /// Throws EnvironmentError if the store cannot be listed.
  async::Task<> refresh();
  /// Calls refresh() every two seconds until stop().
  /// @param on_trouble called when the store, or a run in it, cannot be read, once for each text
  async::Task<> follow(std::function<void(const std::string&)> on_trouble);
  /// To be called by the loop's thread. A request in progress comes to its end first.
  void stop();

 private:
  async::Task<> bring(std::string run);
  void tell(const std::string& trouble);

  asio::steady_timer pause_;
  bool is_stopped_ = false;
  blobs::RemoteArtifacts artifacts_;
  store::RunStore store_;
  std::map<std::string, RunReplica> replicas_;  ///< Keyed by run.
  std::function<void(const std::string&)> on_trouble_;
  std::set<std::string> told_;
};

}  // namespace pipeline::remote_driver
