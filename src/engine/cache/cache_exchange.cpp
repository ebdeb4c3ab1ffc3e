#include "engine/cache/cache_exchange.hpp"

#include <algorithm>

#include "async/on_pool.hpp"
#include "core/file.hpp"
#include "core/log.hpp"
#include "engine/cache/publishing.hpp"

namespace pipeline::engine {
namespace {

constexpr unsigned most_inquiries = 32;  // Maximum number of concurrent requests.
constexpr std::size_t most_named = 5;

std::string words_of(const core::EnvironmentError& error) {
  std::string text = error.what();
  for (const auto& advice : error.advice()) text += "; " + advice;
  return text;
}

async::Task<> answer(RemoteCache& from, CacheLookup& inquiry) {
  try {
    const auto result = co_await from.find(inquiry.key, nullptr);
    if (result) inquiry.answer = entry_of(from, *inquiry.step, inquiry.key, *result);
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

async::Task<> bring(RemoteCache& from, const RemoteOutput& output, store::ArtifactStore& artifacts,
                    std::filesystem::path path, asio::thread_pool& pool,
                    core::CancelSource& cancel) {
  co_await from.fetch(output, path, cancel);
  const DamagedCacheEntry damaged("the output '" + output.record.name + "' in " + from.name() +
                                  " is damaged: its SHA-256 is not the one of its record");
  const auto compare = [&](const store::StoredArtifact& found) {
    if (found.digest != output.record.digest) throw damaged;
  };
  try {
    co_await async::on_pool(pool, [&] { return artifacts.take(path, compare); });
  } catch (const DamagedCacheEntry&) {
    core::remove_tree(path);
    from.invalidate(output);
    throw;
  }
}

async::Task<> inquire(RemoteCache& from, std::vector<CacheLookup>& inquiries) {
  const auto executor = co_await asio::this_coro::executor;
  std::size_t next = 0, open = std::min<std::size_t>(most_inquiries, inquiries.size());
  std::exception_ptr failed;
  async::Gate done(executor);
  const auto take_turns = [&]() -> async::Task<> {
    while (next < inquiries.size() && !failed) {
      CacheLookup& inquiry = inquiries[next++];
      co_await answer(from, inquiry);
    }
  };
  if (open == 0) co_return;
  for (std::size_t i = open; i > 0; --i)
    asio::co_spawn(executor, take_turns, [&](std::exception_ptr error) {
      if (error && !failed) failed = error;
      if (--open == 0) done.open();
    });
  co_await done.wait();
  if (failed) std::rethrow_exception(failed);
}

async::Task<std::optional<store::CacheEntry>> CacheExchange::bring(const StepSpec& step,
                                                                   std::string key, bool only_own) {
  std::optional<store::CacheEntry> entry;
  const auto turn = ++turn_;
  co_await asking_.acquire(turn);
  std::string trouble;
  try {
    if (asks_ && !is_stopped()) entry = co_await brought(step, std::move(key), only_own);
  } catch (const DamagedCacheEntry& error) {
    trouble = std::string(error.what()) + ": it runs again";
  } catch (const core::EnvironmentError& error) {
    if (std::exchange(asks_, false))
      trouble = "what other machines have made cannot be reused: " + words_of(error);
  } catch (...) {
    asking_.release();
    throw;
  }
  asking_.release();
  if (!trouble.empty() && !is_stopped()) events_.emit(event::Notice{step.name, trouble});
  co_return entry;
}

async::Task<std::optional<store::CacheEntry>> CacheExchange::brought(const StepSpec& step,
                                                                     std::string key,
                                                                     bool only_own) {
  std::optional<store::CacheEntry> entry;
  const auto result = co_await results_.find(key, &user_);
  const bool is_own = result && result->run == run_;
  if (!result || (only_own && !is_own)) co_return entry;
  auto found = entry_of(results_, step, key, *result);
  if (is_own) found.run = run_;
  for (const auto& output : result->outputs) {
    const bool is_wanted = std::ranges::find(found.outputs, output.record.name,
                                             &store::OutputRecord::name) != found.outputs.end();
    if (!is_wanted || artifacts_.looks_whole(output.record.digest)) continue;
    const auto path = staging_ / (step.name + "." + output.record.name);
    core::make_folders(staging_);
    core::remove_tree(path);
    co_await engine::bring(results_, output, artifacts_, path, pool_, user_);
  }
  brought_.insert(found.key);
  entry = std::move(found);
  co_return entry;
}

async::Task<> CacheExchange::publish(store::CacheEntry entry) {
  if (brought_.contains(entry.key)) co_return;
  const auto step = entry.step;
  const auto turn = ++turn_;
  co_await sending_.acquire(turn);
  std::string why = why_not_;
  try {
    if (why.empty() && is_stopped()) why = "the run was stopped";
    if (why.empty()) co_await results_.publish(std::move(entry), user_);
  } catch (const core::EnvironmentError& error) {
    why = is_stopped() ? "the run was stopped" : words_of(error);
  } catch (...) {
    sending_.release();
    throw;
  }
  sending_.release();
  if (why.empty()) co_return;
  not_shared_.push_back(step);
  if (why_not_.empty()) why_not_ = why;
}

async::Task<> CacheExchange::publish_names(const StepSpec& step, std::string run,
                                           std::vector<store::OutputRecord> outputs) {
  auto versions = versions_of(step, run, outputs);
  const auto turn = ++turn_;
  co_await naming_.acquire(turn);
  for (auto& [name, version] : versions) {
    std::string why;
    try {
      co_await results_.publish_as(name, std::move(version));
    } catch (const core::EnvironmentError& error) {
      why = words_of(error);
    } catch (...) {
      naming_.release();
      throw;
    }
    if (why.empty()) continue;
    lacks_names_ = true;
    events_.emit(event::Notice{step.name, "what it made is not published as '" + name + "' in " +
                                              results_.name() +
                                              ", which the next run does: " + why});
  }
  naming_.release();
}

void CacheExchange::conclude() {
  if (not_shared_.empty()) return;
  std::string names;
  for (std::size_t i = 0; i < std::min(most_named, not_shared_.size()); ++i)
    names += (names.empty() ? "'" : ", '") + not_shared_[i] + "'";
  if (not_shared_.size() > most_named)
    names += " and " + std::to_string(not_shared_.size() - most_named) + " more";
  events_.emit(event::Notice{"", results_.name() + " has not got what " + names +
                                     " made, so other machines make it again: " + why_not_});
}

}  // namespace pipeline::engine
