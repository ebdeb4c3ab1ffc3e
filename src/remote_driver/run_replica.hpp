/// @file
/// The replica of a run whose driver shares no files with the machine that started it. The remote
/// store of the run's artifacts has the run's record, too. The next driver finds the record there
/// after any loss of a pod, and other machines query it.
///
///   drivers/RUN/head.json        where the run's files and its store are, and the number of log
///                                objects
///   drivers/RUN/pipe-DRIVER.db   a run store with this one run; pipe.db before the first driver
///   drivers/RUN/logs/...         the log bytes of each save
///
/// Only the head is written by several drivers. A driver replaces the head only if it has not
/// changed since this driver wrote it or took it over. So a driver that was suspended between a
/// look at its Lease and a write cannot replace the record that its successor has saved.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "blobs/remote_artifacts.hpp"
#include "store/run_store.hpp"

namespace pipeline::remote_driver {

/// All functions throw EnvironmentError if the remote store cannot be reached.
class RunReplica {
 public:
  /// @param files the key that upload_all() has returned, so that a head with other files is
  /// refused; empty if the key is not known
  RunReplica(blobs::RemoteArtifacts& artifacts, std::string run, std::string files = {})
      : artifacts_(artifacts), run_(std::move(run)), expected_files_(std::move(files)) {}

  /// Uploads the run for its first driver.
  /// @param store  a store that has the run in the state in which the driver will find it
  /// @param folder the run's files
  /// @return the key of the artifact with these files
  async::Task<std::string> upload_all(store::RunStore& store, std::filesystem::path folder);
  /// Downloads the run's record into a store that may not know the run yet, and its files into a
  /// folder, unless that exists. Changes nothing in the remote store.
  /// @return false if there is no replica, for example because remove() has removed it
  async::Task<bool> fetch(store::RunStore& store, std::filesystem::path folder);
  /// Fetches the run for the process that drives it from now on and holds its Lease. Later writes
  /// of an earlier driver do not count, and its next save() throws. @return as fetch() does
  async::Task<bool> take_over(store::RunStore& store, std::filesystem::path folder);

  /// Uploads what has changed since the last save. Only one process may call this at a time: the
  /// one that holds the run's Lease and has taken the run over.
  async::Task<> save(store::RunStore& store);

  /// Downloads what the driver has saved since the last call, including logs, into the store of the
  /// machine that started the run. Costs one request if nothing is new.
  async::Task<> download(store::RunStore& store);
  /// Returns the keys of the artifacts that the run names: its files and the outputs of its steps.
  /// Changes nothing in the remote store.
  async::Task<std::vector<std::string>> artifacts();
  /// Removes the replica. The run must have no driver, and everything must have been downloaded.
  async::Task<> remove();

 private:
  struct Head {
    std::uint64_t saved = 0;  ///< Number of saves by all drivers.
    std::string files;        ///< Key of the artifact with the run's files.
    std::string store;        ///< Name of the blob with the run store.
    std::string tag;          ///< Tag of the head; empty if there is no head.
    /// Number of log objects of each driver, whose name is that of its store and its log objects.
    std::vector<std::pair<std::string, std::size_t>> writers;
  };
  std::string key(const std::string& name) const { return "drivers/" + run_ + "/" + name; }
  static std::string log_name(const std::string& writer, std::size_t number) {
    return "logs/" + writer + "-" + std::to_string(number);
  }
  async::Task<std::optional<Head>> find_head();
  async::Task<bool> put_head();
  async::Task<> replace_head();
  async::Task<> fetch_files(std::filesystem::path folder);
  async::Task<std::optional<Head>> fetch_record(const std::filesystem::path& folder);
  async::Task<bool> fetch_store(const std::string& name, const std::filesystem::path& folder);
  async::Task<> put_store(store::RunStore& store);
  async::Task<> save_logs(const store::RunStore& store);
  async::Task<> download_logs(const store::RunStore& store, const Head& head);

  blobs::RemoteArtifacts& artifacts_;
  const std::string run_;
  const std::string expected_files_;  ///< The key that Head::files must be; empty: any.
  Head head_;
  /// Digest of the last uploaded store without its number of saves; empty: the next save uploads
  /// the store even if it is the same.
  std::string last_store_;
  /// Number of bytes of each log that this process has uploaded.
  std::map<std::string, std::uint64_t> sent_;
  /// Number of downloaded log objects, by driver.
  std::map<std::string, std::size_t> downloaded_logs_;
};

}  // namespace pipeline::remote_driver
