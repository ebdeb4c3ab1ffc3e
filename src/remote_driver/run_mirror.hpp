/// @file
/// A copy of the runs that drivers save to a remote store, for programs that only read them.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "remote_driver/run_replica.hpp"

namespace pipeline::remote_driver {

/// Only downloads: the runs in the remote store stay as they are.
class RunMirror {
 public:
  /// @param folder the state folder of the copy
  RunMirror(asio::io_context& loop, const settings::RemoteStoreSettings& remote,
            const std::filesystem::path& folder);

  /// Downloads the records that drivers have saved since the last call. Runs that the remote store
  /// no longer has stay in the copy.
  /// Throws EnvironmentError if the store cannot be listed.
  async::Task<> refresh();
  /// Calls refresh() every two seconds until stop().
  /// @param on_trouble called when the store, or a run in it, cannot be read; once for each text
  async::Task<> follow(std::function<void(const std::string&)> on_trouble);
  /// Ends follow(), after a request in progress. Must be called by the loop's thread.
  void stop();

 private:
  async::Task<> download(std::string run);
  void report(const std::string& trouble);

  asio::steady_timer pause_;
  bool is_stopped_ = false;
  blobs::RemoteArtifacts artifacts_;
  store::RunStore store_;
  std::map<std::string, RunReplica> replicas_;  ///< Keyed by run.
  std::function<void(const std::string&)> on_trouble_;
  std::set<std::string> reported_;
};

}  // namespace pipeline::remote_driver
