#include "spec/retry_checks.hpp"

#include <algorithm>

#include "core/quantity.hpp"
#include "settings/decode.hpp"

namespace pipeline::spec {
namespace {

void check_on_oom(const OomRetry& on_oom, const core::Value& written, const Settings* step_settings,
                  settings::Diagnostics& diagnostics) {
  const auto refuse = [&](const char* code, std::string message, std::string note) {
    settings::report(diagnostics, code, std::move(message), written.span, {std::move(note)});
  };
  if (written.kind != core::Value::Kind::map) return;
  if (!on_oom.max && !written.find("max"))
    refuse("missing-key", "'on_oom' has no 'max'",
           "as in `on_oom: {max: 32GiB}`: no attempt gets more");
  if (!step_settings) return;
  if (const auto& first = step_settings->resources.memory;
      first && on_oom.max && *on_oom.max <= *first)
    refuse("contradiction",
           "'max' of 'on_oom' is " + core::format_bytes(*on_oom.max) +
               ", and the first attempt already gets " + core::format_bytes(*first),
           "raise 'max', or ask for less in `settings.resources.memory`");
  if (step_settings->kubernetes.resources.limits.contains("memory"))
    refuse("contradiction",
           "'on_oom' raises `resources.memory`, which has no effect beside "
           "`kubernetes.resources.limits.memory`",
           "write the first attempt's limit as `settings.resources.memory`");
}

/// Reports a pause between retries for a step without retries.
void check_delay(const RetrySettings& retry, const core::Value& written,
                 settings::Diagnostics& diagnostics) {
  const auto* delay = written.find("delay");
  if (!delay) delay = written.find("backoff");
  const bool is_unreadable = written.find("max_retries") && !retry.max_retries;
  const bool has_retries = is_unreadable || retry.max_retries.value_or(0) > 0 ||
                           !retry.on.items().empty() || retry.stalled == true ||
                           retry.max_infrastructure_retries.value_or(0) > 0;
  if (delay && !has_retries)
    settings::report(diagnostics, "missing-key",
                     "there is no retry to wait for: `max_retries` is 0 unless it is given",
                     delay->span, {"as in `retry: {max_retries: 3, delay: 5s}`"});
}

}  // namespace

void check_retry(const RetrySettings& retry, const core::Value& written,
                 const Settings* step_settings, const std::optional<Duration>& stalled_after,
                 settings::Diagnostics& diagnostics) {
  if (const auto* on_oom = written.find("on_oom"))
    check_on_oom(retry.on_oom, *on_oom, step_settings, diagnostics);
  // The pipeline's `retry` may leave the number of retries to the steps.
  if (step_settings) check_delay(retry, written, diagnostics);
  const auto& never = retry.never.items();
  if (const auto* on = written.find("on"); on && retry.max_retries == 0U)
    settings::report(diagnostics, "contradiction",
                     "'on' names failures that are retried, and `max_retries` is 0", on->span);
  for (const auto* key : {"on", "never"})
    if (const auto* list = written.find(key))
      for (const auto& item : list->items)
        if (std::ranges::find(retry.on.items(), item.scalar) != retry.on.items().end() &&
            std::ranges::find(never, item.scalar) != never.end())
          settings::report(diagnostics, "contradiction",
                           "'" + item.scalar + "' is both in 'on' and in 'never'", item.span);
  if (const auto* stalled = written.find("stalled"); stalled && retry.stalled == true)
    if (!stalled_after)
      settings::report(diagnostics, "missing-key",
                       "'stalled' ends a step that has stalled, and there is no 'stalled_after'",
                       stalled->span, {"as in `stalled_after: 10m`, beside `retry`"});
}

}  // namespace pipeline::spec
