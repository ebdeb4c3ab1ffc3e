#include "engine/run/step_runner.hpp"

#include <algorithm>
#include <utility>

#include "async/on_pool.hpp"
#include "async/sleep.hpp"
#include "core/error.hpp"
#include "core/quantity.hpp"
#include "engine/attempt/step_log.hpp"
#include "engine/run/retries.hpp"
#include "orchestrators/failure_of.hpp"

namespace pipeline::engine {
namespace {

/// @param attempts number of attempts that have ended
Failure cancelled_after(unsigned attempts) {
  const auto* when = attempts == 0 ? "before it started" : "before its next attempt";
  return {FailureKind::cancelled, std::string("cancelled ") + when, {}, {}};
}

/// Returns the memory limit that the orchestrator enforces for an attempt; nothing if there is
/// none.
std::optional<Bytes> limit_of(const StepSpec& step, const orchestrators::Capabilities& capabilities,
                              const std::optional<Bytes>& raised) {
  if (!capabilities.memory_limits) return std::nullopt;
  return raised ? raised : step.settings->resources.memory;
}

/// Returns the memory limit that an earlier driver of the run has raised for the step; nothing if
/// it has not raised the limit.
std::optional<Bytes> raised_before(const ReadyStep& step, const Retries& retries, bool joins) {
  const auto* point = step.resume_point;
  const auto& asked = step.spec.settings->resources.memory;
  if (!point || !point->memory || !asked || !step.spec.retry->on_oom.max) return std::nullopt;
  auto memory = std::max(*point->memory, *asked);
  if (point->is_out_of_memory && !joins) memory = retries.raised_memory(memory).value_or(memory);
  return memory > *asked ? std::optional(memory) : std::nullopt;
}

/// Adds advice if `retry.on_oom` gave the step no more memory.
void explain_limit(const StepSpec& step, const std::optional<Bytes>& memory, Failure& failure) {
  const auto& max = step.retry->on_oom.max;
  if (failure.kind != FailureKind::out_of_memory || !max) return;
  failure.hints.push_back(
      memory ? "`retry.on_oom` gives the step at most " + core::format_bytes(*max)
             : "`retry.on_oom` raises a limit of memory, and the step had none here: "
               "set `settings.resources.memory`");
}

/// Returns the folder of the step's progress, which belongs to its key; null if the step keeps
/// none.
std::shared_ptr<Checkpoint> open_checkpoint(const RunContext& context, const ReadyStep& step) {
  return step.spec.checkpoint ? Checkpoint::open(context.services.store.folder(), step.key)
                              : nullptr;
}

}  // namespace

StepRunner::StepRunner(const RunContext& context, Journal& journal, JobSlots& slots,
                       GpuReserver& gpus, Results& results)
    : context_(context),
      routes_(context.services.routes),
      journal_(journal),
      slots_(slots),
      gpus_(gpus),
      limits_(context),
      results_(results),
      folders_(context.services.store.paths().work_folder(journal.run_id())),
      downloads_(context.services, context.events, context.user_stop) {}

async::Task<AttemptOutcome> StepRunner::run(const ReadyStep& step, AttemptCounts& counts) {
  const auto& capabilities = routes_.capabilities_of(step.spec);
  bool joins_next = co_await joins(step);
  if (step.resume_point) {
    counts = step.resume_point->counts;
    if (joins_next) --counts.attempts;
  }
  auto checkpoint = open_checkpoint(context_, step);
  Retries retries(step.spec.retry, capabilities.infrastructure_retries);
  auto raised = raised_before(step, retries, joins_next);
  for (;;) {
    auto held = co_await limits_.acquire(step.spec, step.urgency, step.stop);
    step.waits.add("limit");
    auto reservation = co_await reserve(step, counts.avoided_gpus);
    AttemptOutcome outcome;
    if (!reservation) {
      outcome.result.failure = cancelled_after(counts.attempts);
      co_return outcome;
    }
    step.waits.add(gpus_.wants(step.spec) ? "gpus" : "slot");
    if (counts.attempts == 0) counts = {};  // The step's times begin after its waits.
    ++counts.attempts;
    const auto& avoided = counts.avoided_nodes;
    AttemptOptions attempt{.number = counts.attempts,
                           .joins = std::exchange(joins_next, false),
                           .log_name = {},
                           .checkpoint = checkpoint,
                           .memory = raised,
                           .avoided_nodes = {avoided.begin(), avoided.end()}};
    const auto memory = limit_of(step.spec, capabilities, raised);
    {
      const async::Permit permit(slots_.of(capabilities));
      // An attempt that is joined has begun with the inputs of its key.
      if (!attempt.joins && step.renew_key())
        attempt.checkpoint = checkpoint = open_checkpoint(context_, step);
      outcome = co_await try_once(step, std::move(attempt), std::move(*reservation));
    }
    held = {};
    step.waits.restart();
    counts.image = outcome.result.image;
    auto& failure = outcome.result.failure;
    if (!failure) co_return outcome;
    co_await results_.clean_up(std::move(outcome.result.cleanup));
    failure->details = with_log_tail(failure->details, outcome.log_tail);
    const FailedAttempt failed{*failure, outcome.result, memory,
                               context_.services.store.paths().log_file(outcome.record.log)};
    std::optional<Retry> retry;
    if (step.stop.level() == core::StopLevel::none)
      retry = co_await async::on_pool(context_.pool,
                                      [&] { return retries.retry_after(failed, counts); });
    if (step.spec.retry->avoid_failed == true) counts.avoid(outcome.record);
    if (!retry) {
      explain_limit(step.spec, memory, *failure);
      co_return outcome;
    }
    journal_.retried(step.spec, counts.attempts, *failure, *retry);
    if (retry->memory) raised = retry->memory;
    co_await async::sleep(retry->delay, &step.stop);
    step.waits.add("retry");
  }
}

async::Task<std::optional<GpuReservation>> StepRunner::reserve(
    const ReadyStep& step, const std::set<std::string>& avoided) {
  auto& slots = slots_.of(routes_.capabilities_of(step.spec));
  std::optional<GpuReservation> reservation;
  if (gpus_.wants(step.spec)) {
    reservation = co_await gpus_.acquire(step.spec, step.urgency, step.stop, avoided);
  } else {
    co_await slots.acquire(step.urgency);
    reservation.emplace();
  }
  if (reservation && step.stop.level() != core::StopLevel::none) {
    reservation.reset();
    slots.release();
  }
  co_return reservation;
}

/// Runs one attempt, and records its start and its end.
async::Task<AttemptOutcome> StepRunner::try_once(const ReadyStep& step, AttemptOptions attempt,
                                                 GpuReservation gpus) {
  const auto memory = limit_of(step.spec, routes_.capabilities_of(step.spec), attempt.memory);
  const AttemptStart attempt_start{attempt.number, step.environment.description, memory, gpus.gpus};
  auto record = journal_.attempt_began(step.spec, step.key, attempt_start);
  const AttemptContext context{context_, step.stop,       checked_,  damaged_,
                               folders_, results_.data(), downloads_};
  attempt.log_name = record.log;
  const auto start = Clock::now();
  AttemptOutcome outcome;
  std::exception_ptr error;
  std::optional<Failure> failure;
  try {
    outcome = co_await run_attempt(context, step.spec, attempt, step.outputs_of, std::move(gpus));
    failure = outcome.result.failure;
  } catch (const core::EnvironmentError& failed) {
    failure = orchestrators::failure_of(failed);
    error = std::current_exception();
  }
  outcome.phases.waiting =
      std::chrono::duration_cast<std::chrono::milliseconds>(start - step.waits.begin());
  outcome.phases.waits = step.waits.waits();
  outcome.record = journal_.attempt_ended(std::move(record), start, outcome, failure);
  if (error) std::rethrow_exception(error);
  co_return outcome;
}

async::Task<bool> StepRunner::joins(const ReadyStep& step) {
  const auto* point = step.resume_point;
  if (!point || !point->is_open || !routes_.capabilities_of(step.spec).outlives_driver)
    co_return false;
  if (point->key == step.key) co_return true;
  co_await routes_.discard_attempt(journal_.run_id(), step.spec.name, point->counts.attempts);
  co_return false;
}

}  // namespace pipeline::engine
