/// @file
/// Sends a run's notifications when it has ended.
#pragma once

#include <string>

#include <pipeline/events.hpp>

#include "driver/workspace.hpp"

namespace pipeline::driver {

/// Sends the notifications of the pipeline for this end of the run. A notification that fails is
/// reported as a notice; nothing is thrown.
/// @param stop of the run: a stop from here on ends the delivery, an earlier one at once shortens
/// it
void send_notifications(Workspace& workspace, const PipelineSpec& pipeline, store::RunStore& store,
                        const std::string& run, EventSink& events, core::CancelSource& stop);

/// Returns the variable in which the driver of a detached run finds the address of the pipeline's
/// webhook with this index.
std::string variable_of_notification(std::size_t index);

}  // namespace pipeline::driver
