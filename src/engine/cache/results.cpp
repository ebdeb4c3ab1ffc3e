#include "engine/cache/results.hpp"

#include <algorithm>
#include <utility>

#include "engine/clock.hpp"

namespace pipeline::engine {

Results::Results(const RunContext& context)
    : pipeline_(context.services.pipeline),
      store_(context.services.store),
      artifacts_(context.services.artifacts),
      options_(context.options),
      forced_(forced_steps(pipeline_, options_.force, options_.from)),
      keys_(context.services) {
  if (options_.remote_cache) exchange_.emplace(context);
}

std::optional<store::CacheEntry> Results::find_local(const StepSpec& step, const std::string& key) {
  const bool may_be_of_others = may_be_reused(step);
  if (!has_any_ || (!may_be_of_others && !options_.resume)) return std::nullopt;
  // The user asks for this step's outputs: temporary ones that were removed count as missing.
  const bool is_asked_for = options_.only_step == (step.instance ? *step.instance->of : step.name);
  auto entry = keys_.success_of(step, key, is_asked_for);
  const bool is_own = entry && entry->run == options_.run_id;
  if (entry && !is_own && (!may_be_of_others || is_too_old(step, *entry))) entry.reset();
  return entry;
}

bool Results::is_too_old(const StepSpec& step, const store::CacheEntry& entry) {
  if (!step.cache_max_age) return false;
  const auto made = store_.runs().steps(entry.run, entry.step);
  // A result whose run was removed may have any age.
  return made.empty() || wall_now() - made.front().ended > *step.cache_max_age;
}

bool Results::may_be_remote(const StepSpec& step, bool was_interrupted) const {
  return exchange_ && (may_be_downloaded(step) || options_.resume) && !was_interrupted;
}

async::Task<std::optional<store::CacheEntry>> Results::fetch_remote(const StepSpec& step,
                                                                    const StepKey& key) {
  auto entry = co_await exchange_->download(step, key.key, !may_be_downloaded(step));
  if (entry) {
    mark_temporary(step, entry->outputs);
    auto own = *entry;
    own.run = options_.run_id;
    store_.cache().add(own, pipeline_.name, key.parts);
  }
  co_return entry;
}

async::Task<std::string> Results::download_again(const StepSpec& step, std::string key,
                                                 std::vector<store::OutputRecord> outputs) {
  std::string from;
  if (!exchange_) co_return from;
  const bool only_own = !may_be_downloaded(step), may_stay = false;
  const auto entry = co_await exchange_->download(step, std::move(key), only_own, may_stay);
  const bool are_whole = std::ranges::all_of(
      outputs, [&](const auto& output) { return artifacts_.is_kept(output.digest); });
  if (entry && are_whole) from = options_.remote_cache->name();
  co_return from;
}

async::Task<> Results::publish_and_clean_up(const StepSpec& step, store::CacheEntry entry,
                                            std::function<void()> cleanup) {
  if (cleanup && !options_.wait_until_persisted) std::exchange(cleanup, {})();
  if (shares_result(step)) co_await send(std::move(entry));
  co_await clean_up(std::move(cleanup));
}

async::Task<> Results::clean_up(std::function<void()> cleanup) {
  if (!cleanup) co_return;
  if (options_.wait_until_persisted) co_await options_.wait_until_persisted();
  cleanup();
}

}  // namespace pipeline::engine
