/// @file
/// This very program as an image that drives a run in a cluster: itself, its libraries and the
/// public certificate authorities, and nothing else.
#pragma once

#include <string>
#include <vector>

#include <pipeline/events.hpp>

#include "async/task.hpp"
#include "core/cancel.hpp"

namespace pipeline::orchestrators {

struct DriverImage {
  std::string reference;             ///< With a registry by digest.
  bool pull = false;                 ///< Nodes may fetch it; else they have it.
  std::vector<std::string> command;  ///< The words that start the program there.
};

/// Built unless the engine has it, and pushed unless its registry has it. To be called once the
/// cluster has been talked to: what the program has loaded for that goes along.
/// @param repository of a registry; empty: the cluster shares this machine's engine
async::Task<DriverImage> make_driver_image(asio::io_context& loop, std::string repository,
                                           std::string run_id, EventSink& events,
                                           core::CancelSource& cancel);

}  // namespace pipeline::orchestrators
