/// @file
/// Exchanges results with the remote cache: requests those that this machine lacks, and sends its
/// own concurrently with the steps. If the cache fails, the run loses only results of other
/// machines, never a step.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <pipeline/events.hpp>
#include <pipeline/spec.hpp>

#include "async/semaphore.hpp"
#include "engine/cache/remote_cache.hpp"
#include "engine/run_context.hpp"
#include "store/artifact_store.hpp"

namespace pipeline::engine {

/// Converts the result to a cache entry of this machine, whose run is called `s3://team/pipe, run
/// 7f3a`. Throws DamagedCacheEntry if the result lacks an output of the step.
store::CacheEntry entry_of(const RemoteCache& from, const StepSpec& step, const std::string& key,
                           const RemoteResult& result);

/// The destination of a download.
struct DownloadTarget {
  store::ArtifactStore& artifacts;
  std::filesystem::path path;  ///< On the artifacts' file system; nothing exists at this path.
  asio::thread_pool& pool;
};
/// Downloads the output into the artifact store. Throws DamagedCacheEntry if it is damaged.
async::Task<> download(RemoteCache& from, const RemoteOutput& output, DownloadTarget target,
                       core::CancelSource& cancel);

/// A step without a result on this machine, and the result in the remote cache.
struct CacheLookup {
  const StepSpec* step;
  std::string key;
  std::optional<store::CacheEntry> found;  ///< Filled by look_up_all().
};
/// Requests all results concurrently. Damaged entries are ignored.
async::Task<> look_up_all(RemoteCache& from, std::vector<CacheLookup>& lookups);

class CacheExchange {
 public:
  /// Results of the run `options.run_id`, by an earlier driver on another machine, count as its
  /// own. A stop by the user ends transfers in progress.
  /// @param context has `options.remote_cache`
  explicit CacheExchange(const RunContext& context)
      : context_(context),
        cache_(*context.options.remote_cache),
        artifacts_(context.services.artifacts),
        staging_(context.services.store.paths().work_folder(context.options.run_id) / "shared") {}

  async::Task<> check() { return cache_.check(); }
  /// Downloads and verifies the result under this key. Returns nothing if there is none or the
  /// cache fails, which is reported to the user.
  /// @param only_own ignore results of other runs
  /// @param may_stay large outputs may stay in the remote store until something needs them;
  /// otherwise all are downloaded and verified
  async::Task<std::optional<store::CacheEntry>> download(const StepSpec& step, std::string key,
                                                         bool only_own, bool may_stay = true);
  /// Sends a step's result.
  async::Task<> publish(store::CacheEntry entry);
  /// Publishes outputs under the names that the step gives them. Failures are reported to the user:
  /// the next run publishes them.
  async::Task<> publish_names(const StepSpec& step, std::string run,
                              std::vector<store::OutputRecord> outputs);
  /// Returns true if a name lacks an output that was to be published under it.
  bool lacks_names() const { return lacks_names_; }
  /// Reports what could not be sent.
  void conclude();

 private:
  async::Task<std::optional<store::CacheEntry>> try_download(const StepSpec& step, std::string key,
                                                             bool only_own, bool may_stay);
  bool leave_elsewhere(const StepSpec& step, const RemoteOutput& output);
  bool is_stopped() const { return context_.user_stop.level() != core::StopLevel::none; }

  const RunContext& context_;
  RemoteCache& cache_;
  store::ArtifactStore& artifacts_;
  const std::filesystem::path staging_;
  async::Semaphore finding_{16}, sending_{4}, naming_{1};  ///< Limits of concurrent transfers.
  std::size_t next_rank_ = 0;         ///< Waiting coroutines proceed in the order of their arrival.
  bool cache_is_up_ = true;           ///< False once the cache has failed to respond.
  std::set<std::string> downloaded_;  ///< Keys of downloaded results, which are not sent again.
  std::vector<std::string> not_shared_;  ///< Steps whose results could not be sent.
  bool lacks_names_ = false;
  std::string first_reason_;   ///< The error of the first step in not_shared_.
  bool cache_accepts_ = true;  ///< False after an upload failed for a reason that concerns all.
};

}  // namespace pipeline::engine
