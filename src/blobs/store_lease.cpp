#include "blobs/store_lease.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "async/sleep.hpp"
#include "async/timeout.hpp"
#include "core/bounded_json.hpp"
#include "core/log.hpp"
#include "core/random_name.hpp"

namespace pipeline::blobs {
namespace {

using nlohmann::json;
using SteadyClock = std::chrono::steady_clock;
using SystemClock = std::chrono::system_clock;

constexpr int lease_format = 1;
/// Bytes: several times the size of the keys of one round of a cleaning
/// (remote_cache/store_cleaning.cpp), and of a lease that needs all of these keys.
constexpr std::uint64_t max_cleaning = 4u << 20, max_lease = 64u << 20;
constexpr std::size_t max_cleanings = 32;

std::set<std::string> keys_in(const std::string& text) {
  return core::parse_json(text).at("keys").get<std::set<std::string>>();
}

/// Returns a blob's text; nothing if there is no blob, or if the blob cannot be read.
async::Task<std::optional<std::string>> find_readable(BlobStore& store, std::string key) {
  try {
    co_return co_await store.find_text(std::move(key));
  } catch (const BlobError& error) {
    if (error.kind() != BlobError::Kind::damaged_blob) throw;
  }
  co_return std::nullopt;
}

}  // namespace

std::string keys_of_cleaning(const std::string& id) { return cleanings_folder + id + "/keys.json"; }
std::string end_of_cleaning(const std::string& id) { return cleanings_folder + id + "/closed"; }

LeaseRecord read_lease(const std::string& key, const std::string& text) try {
  const auto document = core::parse_json(text);
  LeaseRecord lease{.owner = document.at("owner").get<std::string>(), .text = text};
  lease.knows = document.at("knows").get<std::set<std::string>>();
  lease.needs = document.at("needs").get<std::set<std::string>>();
  return lease;
} catch (const json::exception&) {
  const std::string_view folder = leases_folder;
  const auto name = key.substr(std::min(key.size(), folder.size()));
  return {.owner = name.substr(0, name.find('.')), .knows = {}, .needs = {}, .text = text};
}

async::Task<std::map<std::string, LeaseRecord>> find_leases(BlobStore& store) {
  std::map<std::string, LeaseRecord> found;
  const auto all = co_await store.entries(leases_folder);
  for (const auto& entry : all) {
    std::optional<std::string> text;
    if (entry.size <= max_lease) text = co_await find_readable(store, entry.key);
    const auto written = entry.modified.time_since_epoch().count();
    found[entry.key] = read_lease(entry.key, text ? *text : std::to_string(written));
  }
  co_return found;
}

StoreLease::StoreLease(asio::io_context& loop, std::unique_ptr<BlobStore> store, std::string owner,
                       core::CancelSource* run, std::function<void(const std::string&)> on_lost,
                       LeaseTimes times)
    : loop_(loop),
      store_(std::move(store)),
      owner_(std::move(owner)),
      id_(core::random_name()),
      on_lost_(std::move(on_lost)),
      times_(times) {
  store_->stop_calls_by(given_up_);
  if (!run) return;
  run_.emplace(*run, [this](core::StopLevel level) {
    given_up_.stop(core::StopLevel::immediate);
    if (level == core::StopLevel::immediate) end_given_up_.stop(level);
  });
}

async::Task<bool> StoreLease::use(std::string key) {
  co_await begin();
  used_.insert(key);
  std::vector<std::string> concerned;
  for (const auto& [id, cleaning] : cleanings_)
    if (cleaning.keys.contains(key) && !cleaning.kept.contains(key)) concerned.push_back(id);
  bool is_kept = true;
  for (auto& id : concerned) {
    const bool stays = co_await keep(id, key);
    if (stays) continue;
    is_kept = false;
    co_await wait_for_end(std::move(id));
  }
  co_return is_kept;
}

/// Begins the lease, or renews a lost one. The lease is written before the cleanings are listed: a
/// cleaning lists the leases after it has written its keys, so that at least one of the two sees
/// the other.
async::Task<> StoreLease::begin() {
  co_await beginning_.acquire(0);
  const async::Permit permit(beginning_);
  if (renewal_ && SystemClock::now() - written_ < times_.lifetime / 2) co_return;
  if (renewal_) lose_all();
  if (!renewal_) co_await remove_earlier();
  co_await write();
  co_await answer_new_cleanings();
  if (!renewal_) renewal_ = std::make_unique<async::JoinableTask>(loop_.get_executor(), renew());
}

/// Removes earlier leases of the run. A run has one driver at a time, so that any other lease of
/// the run belongs to a dead driver.
async::Task<> StoreLease::remove_earlier() {
  const auto earlier = co_await store_->list(leases_folder + owner_ + ".");
  for (const auto& lease : earlier) co_await store_->remove(lease);
}

async::Task<> StoreLease::renew() {
  for (;;) {
    co_await async::sleep(times_.renewal, &ended_);
    if (ended_.level() != core::StopLevel::none) co_return;
    try {
      if (SystemClock::now() - written_ > times_.lifetime / 2) lose_all();
      co_await answer_new_cleanings();
      co_await write();
    } catch (const std::exception& error) {
      core::log::info(std::string("the lease in the remote store is not renewed: ") + error.what());
    }
  }
}

/// Returns the cleanings that have not ended. Ages are measured by the store's clock: the time of
/// this process's lease, which was written a short time ago, stands for the present.
async::Task<std::set<std::string>> StoreLease::find_cleanings() {
  const std::string folder = cleanings_folder;
  std::set<std::string> found;
  const auto all = co_await store_->entries(folder);
  if (all.empty()) co_return found;
  const auto own = co_await store_->entries(key());
  std::set<std::string> left_out;
  for (const auto& entry : all) {
    auto id = entry.key.substr(folder.size());
    id.resize(std::min(id.find('/'), id.size()));
    // No cleaning takes so long after it has written `closed`, unless it was killed.
    const bool is_over = entry.key == end_of_cleaning(id) && !own.empty() &&
                         own.front().modified - entry.modified > 5 * times_.max_removal;
    const bool is_foreign = entry.key == keys_of_cleaning(id) && entry.size > max_cleaning;
    if (is_over || is_foreign) left_out.insert(id);
    found.insert(std::move(id));
  }
  for (const auto& id : left_out) found.erase(id);
  co_return found;
}

/// Answers the cleanings that have begun since the last call.
async::Task<> StoreLease::answer_new_cleanings() {
  const auto present = co_await find_cleanings();
  std::erase_if(cleanings_, [&](const auto& each) { return !present.contains(each.first); });
  for (const auto& id : present)
    if (!cleanings_.contains(id) && cleanings_.size() < max_cleanings) co_await answer(id);
}

/// Writes into the lease which of a cleaning's keys this process needs.
async::Task<> StoreLease::answer(std::string id) {
  const auto text = co_await find_readable(*store_, keys_of_cleaning(id));
  if (!text) co_return;  // The cleaning has just ended, or `pipe` did not write the keys.
  Cleaning cleaning{.keys = {}, .kept = {}, .is_closed = false};
  try {
    cleaning.keys = keys_in(*text);
  } catch (const json::exception&) {
    co_return;  // `pipe` did not write the keys.
  }
  for (const auto& key : cleaning.keys)
    if (used_.contains(key)) cleaning.kept.insert(key);
  cleanings_[id] = std::move(cleaning);
  co_await write();
  const bool is_closed = co_await store_->has(end_of_cleaning(id));
  const auto found = cleanings_.find(id);
  if (!is_closed || found == cleanings_.end()) co_return;
  found->second.is_closed = true;
  for (const auto& key : std::exchange(found->second.kept, {})) on_lost_(key);
}

/// Writes into the lease that a cleaning's key is needed. Returns false if this is too late: the
/// cleaning has written `closed`.
async::Task<bool> StoreLease::keep(std::string id, std::string key) {
  auto found = cleanings_.find(id);
  if (found == cleanings_.end() || found->second.is_closed) co_return false;
  found->second.kept.insert(key);
  co_await write();
  const bool is_closed = co_await store_->has(end_of_cleaning(id));
  found = cleanings_.find(id);
  if (!is_closed || found == cleanings_.end()) co_return !is_closed;
  found->second.kept.erase(key);
  co_return false;
}

/// Waits until a cleaning has ended, or can no longer begin a removal.
async::Task<> StoreLease::wait_for_end(std::string id) {
  const auto latest = SteadyClock::now() + 2 * times_.max_removal;
  while (SteadyClock::now() < latest) {
    const bool is_in_progress = co_await store_->has(end_of_cleaning(id));
    if (!is_in_progress) break;
    co_await async::sleep(times_.renewal / 10, nullptr);
  }
  if (const auto found = cleanings_.find(id); found != cleanings_.end()) found->second.keys.clear();
}

/// Writes the lease with the state at the moment of the write. Concurrent calls write one after the
/// other, so that the last write has everything.
async::Task<> StoreLease::write() {
  co_await writing_.acquire(0);
  const async::Permit permit(writing_);
  json document{{"format", lease_format}, {"owner", owner_}, {"writes", ++writes_}};
  document["knows"] = json::array();
  std::set<std::string> needs;
  for (const auto& [id, cleaning] : cleanings_) {
    document["knows"].push_back(id);
    needs.insert(cleaning.kept.begin(), cleaning.kept.end());
  }
  document["needs"] = needs;
  const auto now = SystemClock::now();
  auto body = body_of(document.dump() + "\n");
  co_await store_->put(key(), std::move(body));
  written_ = now;
}

/// Reports all keys in use as lost: the lease was too old, so that cleanings may have begun and
/// ended without it.
void StoreLease::lose_all() {
  for (const auto& key : std::exchange(used_, {}).keys()) on_lost_(key);
  cleanings_.clear();
}

async::Task<> StoreLease::end() {
  ended_.stop(core::StopLevel::graceful);
  if (writes_ == 0) co_return;
  async::Timeout timeout(loop_.get_executor(), [this] {
    given_up_.stop(core::StopLevel::immediate);
    end_given_up_.stop(core::StopLevel::immediate);
  });
  timeout.start(times_.max_end);
  // There is no renewal if the lease was written, but its first answer_new_cleanings() was
  // cancelled.
  if (renewal_) co_await renewal_->join();
  renewal_.reset();
  store_->stop_calls_by(end_given_up_);
  co_await store_->remove(key());
}

}  // namespace pipeline::blobs
