/// @file
/// A run whose driver shares no files with whoever has begun it: what is known of it is kept in the
/// bucket that its artifacts go through. There a driver finds it, however often its pod is lost,
/// and whoever asks after the run.
///   drivers/RUN/pipe.db    a run store with this one run
///   drivers/RUN/head.json  what there is beside it: where the run's files are, and how many
///   objects hold its logs drivers/RUN/logs/...   what logs have gained from one time to the next
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "s3/artifacts.hpp"
#include "store/run_store.hpp"

namespace pipeline::detached {

/// All throw EnvironmentError where the bucket cannot be asked.
class RunReplica {
 public:
  RunReplica(s3::Artifacts& artifacts, std::string run)
      : artifacts_(artifacts), run_(std::move(run)) {}

  /// For its first driver.
  /// @param runs   a store that has the run as its driver is to find it
  /// @param folder the run's files
  async::Task<> upload_all(store::RunStore& runs, std::filesystem::path folder);
  /// What its driver, or an earlier one, finds: into a store that may know nothing of the run, and
  /// its files into a folder that is not there.
  /// @return false if nobody has left anything, or it has been brought home
  async::Task<bool> take_over(store::RunStore& runs, std::filesystem::path folder);

  /// Puts there what has changed since the last time. By one process at a time, which holds the
  /// run's Lease, and has taken it over.
  async::Task<> save(store::RunStore& runs);

  /// What the driver has saved since the last time, into the store of whoever has begun the run;
  /// logs, too. Costs one request where that is nothing.
  async::Task<> bring(store::RunStore& runs);
  /// Nobody drives it any more, and all of it is here.
  async::Task<> remove();

 private:
  struct Head {
    std::uint64_t saved = 0;  ///< How often, by all drivers.
    std::string files;        ///< Key of an artifact.
    std::vector<std::pair<std::string, std::size_t>>
        writers;  ///< Each with the number of its objects of logs.
  };
  std::string key(const std::string& name) const { return "drivers/" + run_ + "/" + name; }
  static std::string log_name(const std::string& writer, std::size_t number) {
    return "logs/" + writer + "-" + std::to_string(number);
  }
  async::Task<std::optional<Head>> find_head();
  async::Task<> put_head();
  async::Task<> fetch_files(std::filesystem::path folder);
  async::Task<bool> fetch_store(const std::filesystem::path& folder);
  async::Task<> put_store(store::RunStore& runs);
  async::Task<> save_logs(const store::RunStore& runs);
  async::Task<> bring_logs(const store::RunStore& runs, const Head& head);

  s3::Artifacts& artifacts_;
  const std::string run_;
  Head head_;
  std::string last_store_;                      ///< Digest of what was put.
  std::map<std::string, std::uint64_t> sent_;   ///< Bytes of each log, by this process.
  std::map<std::string, std::size_t> brought_;  ///< Objects of logs, by writer.
};

}  // namespace pipeline::detached
