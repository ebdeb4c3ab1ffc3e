/// @file
/// Takes an attempt from its environment to its removal, as the engine does.
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
