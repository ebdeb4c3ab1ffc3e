/// @file
/// What a run does with results that machines share: it asks for those that this machine lacks, and
/// sends its own beside the steps. The store may fail at any time: that costs a run what others
/// have made, never a step.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <pipeline/events.hpp>
#include <pipeline/spec.hpp>

#include "async/semaphore.hpp"
#include "engine/remote_cache.hpp"
#include "store/artifact_store.hpp"

namespace pipeline::engine {

/// The result as a success of this machine's, its run called `s3://team/pipe, run 7f3a`. Throws
/// DamagedCacheEntry if it is none of this step.
store::CacheEntry entry_of(const RemoteCache& from, const StepSpec& step, const std::string& key,
                           const RemoteResult& result);

/// Makes the output one of this machine's, on its way in `path`, where nothing is. Throws
/// DamagedCacheEntry if it is not what the record says.
async::Task<> bring(RemoteCache& from, const RemoteOutput& output, store::ArtifactStore& artifacts,
                    std::filesystem::path path, asio::thread_pool& pool,
                    core::CancelSource& cancel);

/// A step that this machine has no result of, and what others have.
struct CacheLookup {
  const StepSpec* step;
  std::string key;
  std::optional<store::CacheEntry> answer;
};
/// Asks for all of them, side by side. What is damaged is no answer.
async::Task<> inquire(RemoteCache& from, std::vector<CacheLookup>& inquiries);

class CacheExchange {
 public:
  /// @param staging a folder of the run's own on the artifacts' file system; made when it is needed
  /// @param run     what it has made itself, by an earlier driver on another machine, is its own
  /// @param user    his stop ends what is on the way
  CacheExchange(RemoteCache& results, store::ArtifactStore& artifacts,
                std::filesystem::path staging, std::string run, EventSink& events,
                core::CancelSource& user, asio::thread_pool& pool)
      : results_(results),
        artifacts_(artifacts),
        staging_(std::move(staging)),
        run_(std::move(run)),
        events_(events),
        user_(user),
        pool_(pool) {}

  async::Task<> check() { return results_.check(); }
  /// What another machine has made under this key, its outputs brought here and compared; nothing
  /// if there is none, or it cannot be had, which is told.
  /// @param only_own what other runs have made is none
  async::Task<std::optional<store::CacheEntry>> bring(const StepSpec& step, std::string key,
                                                      bool only_own = false);
  /// Sends what a step has made.
  async::Task<> publish(store::CacheEntry entry);
  /// Tells what could not be sent.
  void conclude();

 private:
  async::Task<std::optional<store::CacheEntry>> brought(const StepSpec& step, std::string key,
                                                        bool only_own);
  bool is_stopped() const { return user_.level() != core::StopLevel::none; }

  RemoteCache& results_;
  store::ArtifactStore& artifacts_;
  const std::filesystem::path staging_;
  const std::string run_;
  EventSink& events_;
  core::CancelSource& user_;
  asio::thread_pool& pool_;
  async::Semaphore asking_{16}, sending_{4};
  std::size_t turn_ = 0;                 ///< Those who wait go in the order in which they came.
  bool asks_ = true;                     ///< False once the store has failed to answer.
  std::set<std::string> brought_;        ///< Keys: the store has their results.
  std::vector<std::string> not_shared_;  ///< Steps.
  std::string why_not_;  ///< What the first of them met: it is not tried again for the others.
};

}  // namespace pipeline::engine
