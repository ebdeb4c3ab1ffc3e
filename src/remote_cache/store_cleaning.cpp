#include "remote_cache/store_cleaning.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "async/finally.hpp"
#include "async/for_each.hpp"
#include "async/sleep.hpp"
#include "core/quantity.hpp"
#include "core/random_name.hpp"
#include "core/text.hpp"
#include "remote_cache/record.hpp"
#include "remote_cache/remote_names.hpp"

namespace pipeline::remote_cache {
namespace {

using blobs::Entry;
using nlohmann::json;
using SteadyClock = std::chrono::steady_clock;
using SystemClock = std::chrono::system_clock;
using Keys = std::set<std::string>;
using namespace std::chrono_literals;

constexpr std::size_t max_requests = 16;  ///< Maximum number of concurrent requests.
/// Maximum number of keys that one round removes: well within LeaseTimes::max_removal.
constexpr std::size_t max_round = 10'000;
/// The signed URLs that the pods of a run have are valid for a week.
constexpr std::chrono::seconds staging_lifetime = 7 * 24h;
/// A record that was written longer ago surely gets another time if it is written again. Servers
/// report times in seconds, and their clocks differ.
constexpr std::chrono::seconds time_to_differ = 1h;
/// A cleaning that began longer ago was killed.
constexpr std::chrono::seconds max_cleaning_time = 48h;

/// A result's record, and the artifacts that it names.
struct Result {
  Entry entry;
  std::vector<std::string> artifacts = {};
  bool is_damaged = false;
};

class StoreCleaner {
 public:
  StoreCleaner(blobs::BlobStore& store, RemoteNames& names, CleaningPolicy policy,
               std::function<void(const std::string&)> on_note, core::CancelSource& cancel)
      : store_(store),
        names_(names),
        policy_(std::move(policy)),
        on_note_(std::move(on_note)),
        cancel_(cancel) {}

  async::Task<CleaningReport> run();

 private:
  async::Task<> read_artifacts();
  async::Task<std::vector<Result>> read_results(std::vector<Entry> entries);
  async::Task<Keys> named_artifacts();
  void choose_results();
  async::Task<> remove_results();
  async::Task<> remove_artifacts();
  async::Task<> remove_round(std::string id, std::vector<const Entry*> round);
  void report_removed_artifacts(const std::vector<const Entry*>& entries);
  async::Task<> wait_for_leases(const std::string& id);
  async::Task<Keys> needed_by_others(const std::string& id);
  async::Task<> remove_leftovers();
  async::Task<> remove_folders(std::string prefix, std::chrono::seconds min_age, const char* kind);
  async::Task<> abort_uploads();
  async::Task<> remove_dead_cleanings();

  void check_stop() const {
    if (cancel_.level() != core::StopLevel::none)
      throw core::EnvironmentError("the cleaning was stopped before its end");
  }
  async::Task<> remove(const std::string& key) {
    check_stop();
    co_await store_.remove(key);
  }
  bool is_older(const Entry& entry, std::chrono::seconds age) const {
    return entry.modified < now_ - age;
  }
  void report_removed(const char* kind, std::string name, std::uint64_t bytes) {
    report_.removed.push_back({kind, std::move(name), bytes});
    report_.bytes += bytes;
  }

  blobs::BlobStore& store_;
  RemoteNames& names_;
  const CleaningPolicy policy_;
  const std::function<void(const std::string&)> on_note_;
  core::CancelSource& cancel_;
  const SystemClock::time_point now_ = SystemClock::now();
  std::map<std::string, Entry> artifacts_;  ///< Keyed by the object's key.
  std::vector<Result> results_;             ///< The results that stay.
  std::vector<Result> old_;                 ///< The results that will be removed.
  Keys needed_;                             ///< Keys of artifacts.
  CleaningReport report_;
};

async::Task<CleaningReport> StoreCleaner::run() {
  co_await read_artifacts();
  auto records = co_await store_.entries(results_folder);
  results_ = co_await read_results(std::move(records));
  needed_ = co_await named_artifacts();
  choose_results();
  co_await remove_results();
  for (const auto& result : results_)
    needed_.insert(result.artifacts.begin(), result.artifacts.end());
  co_await remove_artifacts();
  co_await remove_leftovers();
  co_return std::move(report_);
}

async::Task<> StoreCleaner::read_artifacts() {
  auto all = co_await store_.entries("artifacts/");
  for (auto& entry : all) {
    report_.bytes_left += entry.size;
    auto key = entry.key;
    artifacts_.emplace(std::move(key), std::move(entry));
  }
}

/// Reads the records of results, several at a time.
async::Task<std::vector<Result>> StoreCleaner::read_results(std::vector<Entry> entries) {
  std::vector<Result> results;
  for (auto& entry : entries) results.push_back({std::move(entry)});
  const auto read = [&](Result& result) -> async::Task<> {
    check_stop();
    try {
      const auto text = co_await store_.find_text(result.entry.key, &cancel_);
      if (!text) co_return;  // Another program has just removed the record.
      const auto record = read_record(*text);
      if (!record)
        throw core::EnvironmentError(
            result.entry.key + " in " + store_.url() + " was written by a later version of pipe",
            {"use that version: this one cannot read which artifacts the result needs"});
      for (const auto& output : record->outputs)
        result.artifacts.push_back(
            blobs::RemoteArtifacts::key_of(output.record.digest.hex(), output.record.is_directory));
    } catch (const std::invalid_argument&) {
      result.is_damaged = true;
    } catch (const blobs::BlobError& error) {
      if (error.kind() != blobs::BlobError::Kind::damaged_blob) throw;
      result.is_damaged = true;
    }
  };
  co_await async::for_each(results, max_requests, read);
  co_return results;
}

/// Returns the keys of the artifacts that have a published name or that CleaningPolicy::kept names.
async::Task<Keys> StoreCleaner::named_artifacts() {
  Keys needed;
  if (policy_.kept) needed = co_await policy_.kept();
  auto all = co_await names_.names();
  const auto read = [&](const std::string& name) -> async::Task<> {
    const auto found = co_await names_.find(name);
    for (const auto& version : found.versions)
      needed.insert(
          blobs::RemoteArtifacts::key_of(version.output.digest.hex(), version.output.is_directory));
  };
  co_await async::for_each(all, max_requests, read);
  co_return needed;
}

/// Moves the results that will be removed to `old_`: damaged ones, those above the age, and the
/// oldest ones above the budget.
void StoreCleaner::choose_results() {
  std::ranges::sort(results_, {}, [](const Result& result) { return result.entry.modified; });
  std::map<std::string, std::size_t> uses;
  std::uint64_t bytes = 0;
  const auto size_of = [&](const std::string& key) {
    const auto found = artifacts_.find(key);
    return found == artifacts_.end() ? 0 : found->second.size;
  };
  const auto use = [&](const std::string& key) {
    if (uses[key]++ == 0) bytes += size_of(key);
  };
  for (const auto& key : needed_) use(key);
  for (const auto& result : results_) std::ranges::for_each(result.artifacts, use);
  std::erase_if(results_, [&](Result& result) {
    const bool is_old = policy_.older_than && is_older(result.entry, *policy_.older_than);
    const bool is_above = policy_.max_bytes && bytes > *policy_.max_bytes;
    if (!is_old && !is_above && !result.is_damaged) return false;
    if (!is_older(result.entry, policy_.min_age)) return false;
    for (const auto& key : result.artifacts)
      if (--uses[key] == 0) bytes -= size_of(key);
    old_.push_back(std::move(result));
    return true;
  });
  if (policy_.max_bytes && bytes > *policy_.max_bytes)
    on_note_("artifacts of " + core::format_bytes(bytes) +
             " stay: names, runs or results of the last " +
             core::counted(static_cast<std::size_t>(policy_.min_age / 1h), "hour") + " need them");
}

async::Task<> StoreCleaner::remove_results() {
  if (old_.empty()) co_return;
  const auto remove_one = [&](Result& result) { return remove(result.entry.key); };
  if (!policy_.is_dry_run) co_await async::for_each(old_, max_requests, remove_one);
  std::uint64_t bytes = 0;
  for (const auto& result : old_) bytes += result.entry.size;
  report_removed("results", core::counted(old_.size(), "record"), bytes);
}

async::Task<> StoreCleaner::remove_artifacts() {
  std::vector<const Entry*> unused;
  for (const auto& [key, entry] : artifacts_)
    if (!needed_.contains(key) && is_older(entry, policy_.min_age)) unused.push_back(&entry);
  if (policy_.is_dry_run) co_return report_removed_artifacts(unused);
  co_await remove_dead_cleanings();
  for (auto begin = unused.begin(); begin != unused.end();) {
    const auto end = begin + std::min<std::ptrdiff_t>(max_round, unused.end() - begin);
    std::vector<const Entry*> round(begin, end);
    const auto id = core::random_name();
    // Processes that need one of the keys wait until both blobs are removed, `closed` as the last.
    const auto withdraw = [&]() -> async::Task<> {
      co_await store_.remove(blobs::keys_of_cleaning(id));
      co_await store_.remove(blobs::end_of_cleaning(id));
    };
    co_await async::finally(remove_round(id, std::move(round)), withdraw);
    begin = end;
  }
}

/// Removes the records of cleanings that were killed.
async::Task<> StoreCleaner::remove_dead_cleanings() {
  const auto all = co_await store_.entries(blobs::cleanings_folder);
  for (const auto& entry : all)
    if (is_older(entry, max_cleaning_time)) co_await remove(entry.key);
}

void StoreCleaner::report_removed_artifacts(const std::vector<const Entry*>& entries) {
  if (entries.empty()) return;
  std::uint64_t bytes = 0;
  for (const auto* entry : entries) bytes += entry->size;
  report_removed("artifacts", std::to_string(entries.size()) + " that nothing needs", bytes);
  report_.bytes_left -= bytes;
}

/// Removes those artifacts of the round that nobody needs, in the order that store_lease.hpp
/// describes.
async::Task<> StoreCleaner::remove_round(std::string id, std::vector<const Entry*> round) {
  json document{{"keys", json::array()}};
  for (const auto* entry : round) document["keys"].push_back(entry->key);
  auto keys = blobs::body_of(document.dump() + "\n");
  co_await store_.put(blobs::keys_of_cleaning(id), std::move(keys));
  co_await wait_for_leases(id);
  auto end = blobs::body_of("what is needed has been counted\n");
  co_await store_.put(blobs::end_of_cleaning(id), std::move(end));
  // The system clock also counts while the machine sleeps; the steady clock is never set back.
  const auto is_late = [&, by_calendar = SystemClock::now(), closed = SteadyClock::now()] {
    return SystemClock::now() - by_calendar > policy_.times.max_removal ||
           SteadyClock::now() - closed > policy_.times.max_removal;
  };
  const bool has_record = co_await store_.has(blobs::keys_of_cleaning(id));
  if (!has_record)
    throw core::EnvironmentError(
        "this cleaning made no progress for days, so that another one "
        "removed its record as that of a killed process",
        {"run the command again"});
  const auto needed = co_await needed_by_others(id);
  const auto kept =
      std::erase_if(round, [&](const Entry* entry) { return needed.contains(entry->key); });
  if (kept > 0)
    on_note_(core::counted(kept, "artifact") +
             (kept == 1 ? " that a run needs stays" : " that a run needs stay"));
  const auto remove_one = [&](const Entry* entry) -> async::Task<> {
    if (is_late())
      throw core::EnvironmentError("the removal takes too long, and ends here",
                                   {"run the command again: it continues"});
    co_await remove(entry->key);
  };
  co_await async::for_each(round, max_requests, remove_one);
  report_removed_artifacts(round);
}

/// Waits until each process that holds a lease knows the cleaning. Removes a lease that was not
/// renewed for its lifetime, because its process is dead.
async::Task<> StoreCleaner::wait_for_leases(const std::string& id) {
  struct Seen {
    std::string text;
    SteadyClock::time_point since;
  };
  std::map<std::string, Seen> silent;
  for (bool is_first = true;; is_first = false) {
    const auto all = co_await blobs::find_leases(store_);
    std::size_t waiting = 0;
    for (const auto& [key, lease] : all) {
      if (lease.knows.contains(id)) continue;
      auto& seen = silent[key];
      if (seen.text != lease.text) seen = {lease.text, SteadyClock::now()};
      if (SteadyClock::now() - seen.since > policy_.times.lifetime)
        co_await store_.remove(key);
      else
        ++waiting;
    }
    if (waiting == 0) co_return;
    if (is_first)
      on_note_(
          "waiting for the answer of " + core::counted(waiting, "run") +
          (waiting == 1 ? " that uses the store, for " : " that use the store, for ") +
          std::to_string(
              std::chrono::duration_cast<std::chrono::seconds>(policy_.times.lifetime).count()) +
          " s at most");
    co_await async::sleep(policy_.times.renewal / 5, &cancel_);
    check_stop();
  }
}

/// Returns the artifacts that leases, names and results written meanwhile need. The leases are read
/// first: a process removes its lease after it has written its results.
async::Task<Keys> StoreCleaner::needed_by_others(const std::string& id) {
  Keys needed;
  const auto all = co_await blobs::find_leases(store_);
  for (const auto& [key, lease] : all)
    if (lease.knows.contains(id)) needed.insert(lease.needs.begin(), lease.needs.end());
  std::map<std::string, const Result*> known;
  for (const auto& result : results_) known[result.entry.key] = &result;
  auto present = co_await store_.entries(results_folder);
  std::erase_if(present, [&](const Entry& entry) {
    const auto found = known.find(entry.key);
    return found != known.end() && found->second->entry.modified == entry.modified &&
           found->second->entry.size == entry.size && is_older(entry, time_to_differ);
  });
  const auto fresh = co_await read_results(std::move(present));
  for (const auto& result : fresh) needed.insert(result.artifacts.begin(), result.artifacts.end());
  auto by_name = co_await named_artifacts();
  needed.merge(by_name);
  co_return needed;
}

/// Removes the files and uploads that killed processes left, and old checkpoints.
async::Task<> StoreCleaner::remove_leftovers() {
  co_await remove_folders("runs/", std::max(staging_lifetime, policy_.min_age), "files of a run");
  if (policy_.older_than)
    co_await remove_folders("checkpoints/", std::max(*policy_.older_than, policy_.min_age),
                            "checkpoint");
  co_await abort_uploads();
}

/// Aborts uploads in parts that drivers and pods had begun before they were killed. No list of
/// objects shows the parts of such an upload, and the server charges for them. A pod may continue
/// its upload while its signed URLs are valid, and while its driver holds a lease.
async::Task<> StoreCleaner::abort_uploads() {
  auto* uploads = store_.pod_access();
  if (!uploads) co_return;
  auto left = co_await uploads->open_uploads();
  const auto held = co_await blobs::find_leases(store_);
  const auto is_dead = [&](const blobs::OpenUpload& upload) {
    const auto age = std::max(staging_lifetime, policy_.min_age);
    return upload.begun < now_ - age && std::ranges::none_of(held, [&](const auto& lease) {
             return upload.key.starts_with("runs/" + lease.second.owner + "/");
           });
  };
  std::erase_if(left, [&](const blobs::OpenUpload& upload) { return !is_dead(upload); });
  const auto abort_one = [&](const blobs::OpenUpload& upload) -> async::Task<> {
    check_stop();
    co_await uploads->abort_upload(upload.key, upload.id);
  };
  if (!policy_.is_dry_run) co_await async::for_each(left, max_requests, abort_one);
  if (!left.empty()) report_removed("uploads", core::counted(left.size(), "unfinished upload"), 0);
}

/// Removes the folders below the prefix that have no blob younger than `min_age`, and whose run
/// holds no lease.
async::Task<> StoreCleaner::remove_folders(std::string prefix, std::chrono::seconds min_age,
                                           const char* kind) {
  const auto all = co_await store_.entries(prefix);
  std::map<std::string, std::vector<const Entry*>> folders;
  Keys young;
  for (const auto& entry : all) {
    const auto name =
        entry.key.substr(prefix.size(), entry.key.find('/', prefix.size()) - prefix.size());
    folders[name].push_back(&entry);
    if (!is_older(entry, min_age)) young.insert(name);
  }
  const auto held = co_await blobs::find_leases(store_);
  for (const auto& [key, lease] : held) young.insert(lease.owner);
  for (auto& [name, entries] : folders) {
    if (young.contains(name)) continue;
    const auto remove_one = [&](const Entry* entry) { return remove(entry->key); };
    if (!policy_.is_dry_run) co_await async::for_each(entries, max_requests, remove_one);
    std::uint64_t bytes = 0;
    for (const auto* entry : entries) bytes += entry->size;
    report_removed(kind, name, bytes);
  }
}

}  // namespace

async::Task<CleaningReport> clean_store(blobs::BlobStore& store, RemoteNames& names,
                                        CleaningPolicy policy,
                                        std::function<void(const std::string&)> on_note,
                                        core::CancelSource& cancel) {
  StoreCleaner cleaner(store, names, std::move(policy), std::move(on_note), cancel);
  co_return co_await cleaner.run();
}

}  // namespace pipeline::remote_cache
