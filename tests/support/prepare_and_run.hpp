/// @file
/// Runs an attempt as src/engine does: prepares its environment, runs it, and cleans up after it.
#pragma once

#include "orchestrators/orchestrator.hpp"
#include "support/attempt_builder.hpp"

namespace pipeline::test {

inline async::Task<orchestrators::AttemptResult> prepare_and_run(
    orchestrators::Orchestrator& orchestrator, AttemptBuilder& builder, EventSink& events) {
  co_await orchestrator.prepare(builder.step, events, builder.cancel);
  auto result = co_await orchestrator.run(builder.attempt());
  if (result.cleanup) result.cleanup();
  co_await orchestrator.settle();
  co_return result;
}

}  // namespace pipeline::test
