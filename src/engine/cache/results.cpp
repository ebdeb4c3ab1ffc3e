#include "engine/cache/results.hpp"

#include <utility>

#include "engine/attempt/attempt.hpp"

namespace pipeline::engine {

Results::Results(const Services& services, EventSink& events, core::CancelSource& user,
                 asio::thread_pool& pool, const EngineOptions& options)
    : pipeline_(services.pipeline),
      runs_(services.runs),
      options_(options),
      forced_(forced_steps(pipeline_, options.force, options.from)),
      decisions_(services) {
  if (options_.shared)
    exchange_.emplace(*options_.shared, services.artifacts,
                      services.runs.work_folder(options_.run_id) / "shared", options_.run_id,
                      events, user, pool);
}

std::optional<store::CacheEntry> Results::here(const StepSpec& step, const std::string& key) {
  const bool any = may_be_reused(step);
  if (!any && !options_.resume) return std::nullopt;
  auto entry = decisions_.success_of(key);
  if (entry && !any && entry->run != options_.run_id) entry.reset();
  return entry;
}

bool Results::may_be_elsewhere(const StepSpec& step, bool was_cut_off) const {
  return exchange_ && (may_be_reused(step) || options_.resume) && !was_cut_off;
}

async::Task<std::optional<store::CacheEntry>> Results::fetch_remote(const StepSpec& step,
                                                                    const StepKey& key) {
  auto entry = co_await exchange_->bring(step, key.key, !may_be_reused(step));
  if (entry) {
    auto own = *entry;
    own.run = options_.run_id;
    runs_.add_cache_entry(own, pipeline_.name, key.parts);
  }
  co_return entry;
}

async::Task<> Results::hand_on(const StepSpec& step, store::CacheEntry entry,
                               std::function<void()> cleanup) {
  if (cleanup && !options_.wait_until_persisted) std::exchange(cleanup, {})();
  if (are_shared(step)) co_await send(std::move(entry));
  co_await clear_away(std::move(cleanup));
}

async::Task<> Results::clear_away(std::function<void()> cleanup) {
  if (!cleanup) co_return;
  if (options_.wait_until_persisted) co_await options_.wait_until_persisted();
  cleanup();
}

}  // namespace pipeline::engine
