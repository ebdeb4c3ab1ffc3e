#include "engine/cache/cache_exchange.hpp"

#include <algorithm>

#include "async/for_each.hpp"
#include "async/on_pool.hpp"
#include "core/file.hpp"
#include "core/log.hpp"
#include "engine/cache/elsewhere.hpp"
#include "engine/cache/publishing.hpp"

namespace pipeline::engine {
namespace {

constexpr std::size_t max_lookups = 32;  ///< Maximum number of concurrent requests.
constexpr std::size_t max_named = 5;     ///< Maximum number of steps that a message names.

/// Returns the error's message and its advice in one line.
std::string words_of(const core::EnvironmentError& error) {
  std::string text = error.what();
  for (const auto& advice : error.advice()) text += "; " + advice;
  return text;
}

async::Task<> look_up(RemoteCache& from, CacheLookup& lookup) {
  try {
    const auto result = co_await from.find(lookup.key, nullptr);
    if (result) lookup.found = entry_of(from, *lookup.step, lookup.key, *result);
  } catch (const DamagedCacheEntry& error) {
    core::log::info(error.what());
  }
}

}  // namespace

store::CacheEntry entry_of(const RemoteCache& from, const StepSpec& step, const std::string& key,
                           const RemoteResult& result) {
  store::CacheEntry entry;
  entry.key = key;
  entry.run = from.name() + ", run " + result.run;
  entry.step = step.name;
  for (const auto& wanted : step.outputs) {
    const auto found = std::ranges::find(
        result.outputs, wanted.name, [](const RemoteOutput& output) { return output.record.name; });
    if (found == result.outputs.end() || found->record.file_name != wanted.file_name)
      throw DamagedCacheEntry("the record of '" + step.name + "' in " + from.name() +
                              " has no output '" + wanted.name + "'");
    entry.outputs.push_back(found->record);
  }
  return entry;
}

async::Task<> download(RemoteCache& from, const RemoteOutput& output, DownloadTarget target,
                       core::CancelSource& cancel) {
  co_await from.fetch(output, target.path, cancel);
  const DamagedCacheEntry damaged("the output '" + output.record.name + "' in " + from.name() +
                                  " is damaged: its SHA-256 is not the one of its record");
  const auto compare = [&](const store::StoredArtifact& found) {
    if (found.digest != output.record.digest) throw damaged;
  };
  try {
    co_await async::on_pool(target.pool,
                            [&] { return target.artifacts.take(target.path, compare); });
  } catch (const DamagedCacheEntry&) {
    core::remove_tree(target.path);
    from.invalidate(output);
    throw;
  }
}

async::Task<> look_up_all(RemoteCache& from, std::vector<CacheLookup>& lookups) {
  const auto work = [&](CacheLookup& lookup) { return look_up(from, lookup); };
  co_await async::for_each(lookups, max_lookups, work);
}

async::Task<std::optional<store::CacheEntry>> CacheExchange::download(const StepSpec& step,
                                                                      std::string key,
                                                                      bool only_own,
                                                                      bool may_stay) {
  if (!may_stay) downloaded_.erase(key);  // The result is then uploaded if the step runs again.
  std::optional<store::CacheEntry> entry;
  const auto turn = ++next_rank_;
  co_await finding_.acquire(turn);
  const async::Permit permit(finding_);
  std::string trouble;
  try {
    if (cache_is_up_ && !is_stopped())
      entry = co_await try_download(step, std::move(key), only_own, may_stay);
  } catch (const DamagedCacheEntry& error) {
    trouble = std::string(error.what()) + ": the step runs again";
  } catch (const core::EnvironmentError& error) {
    if (std::exchange(cache_is_up_, false))
      trouble = "results of other machines cannot be reused: " + words_of(error);
  }
  if (!trouble.empty() && !is_stopped()) context_.events.emit(event::Notice{step.name, trouble});
  co_return entry;
}

/// Downloads as download() does, but without its limit and its reports: throws if the cache fails.
async::Task<std::optional<store::CacheEntry>> CacheExchange::try_download(const StepSpec& step,
                                                                          std::string key,
                                                                          bool only_own,
                                                                          bool may_stay) {
  std::optional<store::CacheEntry> entry;
  const auto result = co_await cache_.find(key, &context_.user_stop);
  const bool is_own = result && result->run == context_.options.run_id;
  if (!result || (only_own && !is_own)) co_return entry;
  auto found = entry_of(cache_, step, key, *result);
  if (is_own) found.run = context_.options.run_id;
  std::vector<store::ArtifactHold> holds;
  for (const auto& output : result->outputs) {
    holds.push_back(artifacts_.hold(output.record.digest));
    const bool is_wanted = std::ranges::find(found.outputs, output.record.name,
                                             &store::OutputRecord::name) != found.outputs.end();
    if (!is_wanted || artifacts_.is_kept(output.record.digest)) continue;
    if (may_stay && leave_elsewhere(step, output)) continue;
    const auto path = staging_ / (step.name + "." + output.record.name);
    core::make_folders(staging_);
    core::remove_tree(path);
    // Named, because g++ 12 destroys a temporary in a co_await expression twice.
    const DownloadTarget target{artifacts_, path, context_.pool};
    co_await engine::download(cache_, output, target, context_.user_stop);
  }
  downloaded_.insert(found.key);
  entry = std::move(found);
  co_return entry;
}

/// Leaves the output in the remote store until something needs it, and notes that in the artifact
/// store. Returns false, and notes nothing, for an output that has to be fetched at once, such as
/// a small one.
bool CacheExchange::leave_elsewhere(const StepSpec& step, const RemoteOutput& output) {
  constexpr std::uint64_t small_output = 1 << 20;  // Bytes.
  const auto& record = output.record;
  auto place = cache_.place(context_.services.routes.capabilities_of(step).takes_elsewhere);
  if (place.empty() || record.bytes <= small_output ||
      !may_stay_elsewhere(context_.services.pipeline, step, record.name))
    return false;
  artifacts_.note_elsewhere(record.digest, {.is_directory = record.is_directory,
                                            .is_executable = output.is_executable,
                                            .bytes = record.bytes,
                                            .store = std::move(place)});
  return true;
}

async::Task<> CacheExchange::publish(store::CacheEntry entry) {
  if (downloaded_.contains(entry.key)) co_return;
  const auto step = entry.step;
  const auto turn = ++next_rank_;
  co_await sending_.acquire(turn);
  const async::Permit permit(sending_);
  std::string reason = cache_accepts_ ? "" : first_reason_;
  try {
    if (reason.empty() && is_stopped()) reason = "the run was stopped";
    if (reason.empty()) co_await cache_.publish(std::move(entry), context_.user_stop);
  } catch (const DamagedCacheEntry& error) {
    reason = words_of(error);
  } catch (const core::EnvironmentError& error) {
    reason = is_stopped() ? "the run was stopped" : words_of(error);
    cache_accepts_ = false;
  }
  if (reason.empty()) co_return;
  not_shared_.push_back(step);
  if (first_reason_.empty()) first_reason_ = reason;
}

async::Task<> CacheExchange::publish_names(const StepSpec& step, std::string run,
                                           std::vector<store::OutputRecord> outputs) {
  auto versions = versions_of(step, run, outputs);
  const auto turn = ++next_rank_;
  co_await naming_.acquire(turn);
  const async::Permit permit(naming_);
  for (auto& [name, version] : versions) {
    std::string reason;
    try {
      co_await cache_.publish_as(name, std::move(version));
    } catch (const core::EnvironmentError& error) {
      reason = words_of(error);
    }
    if (reason.empty()) continue;
    lacks_names_ = true;
    context_.events.emit(event::Notice{step.name, "its output is not published as '" + name +
                                                      "' in " + cache_.name() +
                                                      "; the next run publishes it: " + reason});
  }
}

void CacheExchange::conclude() {
  if (not_shared_.empty()) return;
  std::string names;
  for (std::size_t i = 0; i < std::min(max_named, not_shared_.size()); ++i)
    names += (names.empty() ? "'" : ", '") + not_shared_[i] + "'";
  if (not_shared_.size() > max_named)
    names += " and " + std::to_string(not_shared_.size() - max_named) + " more";
  context_.events.emit(event::Notice{
      "", cache_.name() + " lacks the results of " + names + ": " + first_reason_ +
              ". Other machines run these steps again, until `pipe run --no-cache` here has shared "
              "the results"});
}

}  // namespace pipeline::engine
