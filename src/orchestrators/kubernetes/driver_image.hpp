/// @file
/// An image of the driver of a run in a cluster. The image contains this program, its libraries and
/// the public certificate authorities, and nothing else.
#pragma once

#include <string>
#include <vector>

#include <pipeline/events.hpp>

#include "async/task.hpp"
#include "core/cancel.hpp"

namespace pipeline::orchestrators::kubernetes {

struct DriverImage {
  std::string reference;             ///< Has the digest if the image has a registry.
  bool pull = false;                 ///< Nodes may pull it; otherwise they have it.
  std::vector<std::string> command;  ///< The command that starts the program in the image.
  std::string architecture;          ///< The program's, in the words of node labels: `amd64`.
};

/// Builds the image unless the engine has it, and pushes it unless its registry has it. Call this
/// after the first request to the cluster, so that the image includes the libraries that the
/// request has loaded.
/// @param repository of a registry; if empty, the cluster shares this machine's engine
async::Task<DriverImage> make_driver_image(asio::io_context& loop, std::string repository,
                                           std::string run_id, EventSink& events,
                                           core::CancelSource& cancel);

}  // namespace pipeline::orchestrators::kubernetes
