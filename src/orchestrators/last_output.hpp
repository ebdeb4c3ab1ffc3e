/// @file
/// Receives output of an ended attempt that is still in transit.
#pragma once

#include <cstdint>

#include "async/change.hpp"
#include "async/joinable_task.hpp"
#include "core/cancel.hpp"

namespace pipeline::orchestrators {

/// Waits until the task `output` has ended. Output in transit arrives without long pauses, so the
/// stream is closed after ten silent seconds. After an immediate stop of the attempt, the stream is
/// closed after one second even if output arrives, because a server may send without end.
/// @param changed  is notified when the task has ended
/// @param received number of bytes that the task has received so far
/// @param cancel   the attempt's
/// @param stream   closes the stream, which ends the task
async::Task<> read_last_output(async::JoinableTask& output, async::Change& changed,
                               const std::uint64_t& received, core::CancelSource& cancel,
                               core::CancelSource& stream);

}  // namespace pipeline::orchestrators
