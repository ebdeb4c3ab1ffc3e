/// @file
/// One attempt of a step around the orchestrator's part of it: folders, code, inputs, log, timeout,
/// and its outputs into the store.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/gather.hpp"
#include "engine/gpu_pool.hpp"
#include "engine/run.hpp"
#include "engine/work_folders.hpp"

namespace pipeline::engine {

struct AttemptOutcome {
  orchestrators::AttemptResult result;
  std::vector<store::OutputRecord> outputs;  ///< Of a success.
  store::AttemptRecord record;               ///< Of how it ended.
  std::deque<std::string> log_tail;
  std::shared_ptr<const void> folder;  ///< Of a success: what it worked in is removed with this,
                                       ///< once the success is recorded.
};

struct AttemptContext {
  const Services& services;
  EventSink& events;
  asio::thread_pool& pool;
  core::CancelSource& stop;  ///< Of the run.
  std::string run_id;
  std::set<core::Digest>& checked;  ///< Artifacts whose content need not be read again in this run.
  WorkFolders& folders;
};

/// One try of a step.
struct AttemptOptions {
  unsigned number;  ///< From 1.
  bool joins;       ///< Attempt::joins
};

/// Runs one attempt of the step; its failure is in the result. Throws EnvironmentError where this
/// machine fails (a full disk, ...).
/// @param outputs of the steps that it takes its inputs from; they stay until the attempt has ended
/// @param gpus    given back as soon as nothing of the step runs any more: what it made is stored
/// without them
async::Task<AttemptOutcome> run_attempt(AttemptContext context, const StepSpec& step,
                                        AttemptOptions which, OutputsOf outputs,
                                        GpuReservation gpus, std::string log_name);

}  // namespace pipeline::engine
