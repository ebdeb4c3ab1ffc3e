/// @file
/// Reads what an ended attempt has printed and is still on its way.
#pragma once

#include <cstdint>

#include "async/change.hpp"
#include "async/joinable_task.hpp"
#include "core/cancel.hpp"

namespace pipeline::orchestrators {

/// Waits until the task `output` has ended. Output in transit arrives without long pauses, so a
/// stream that is silent for ten seconds is given up; after a stop at once, any is after a second,
/// because a server may send without end.
/// @param changed  is notified when the task has ended
/// @param received bytes that the task has received
/// @param cancel   of the attempt
/// @param stream   ends the task
async::Task<> read_last_output(async::JoinableTask& output, async::Change& changed,
                               const std::uint64_t& received, core::CancelSource& cancel,
                               core::CancelSource& stream);

}  // namespace pipeline::orchestrators
