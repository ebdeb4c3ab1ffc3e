/// @file
/// A user's Place behind the orchestrator port.
#pragma once

#include <memory>

#include <pipeline/run.hpp>

#include "orchestrators/orchestrator.hpp"

namespace pipeline::cli {

/// Refers to the place.
std::unique_ptr<Orchestrator> make_place_orchestrator(asio::io_context& loop, Place& place);

}  // namespace pipeline::cli
