/// @file
/// Creates orchestrators by name. Code that needs only data about them uses the catalog.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "orchestrators/catalog/catalog.hpp"
#include "orchestrators/options.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators {

using Factory = std::unique_ptr<Orchestrator>(asio::io_context& loop, OrchestratorOptions options);

/// Returns the functions that create orchestrators, by name.
const std::map<std::string, Factory*>& factories();

/// Creates the orchestrator; passes on only the connection fields that it has. Throws InputError,
/// with the known names and a similar one, for an unknown name.
std::unique_ptr<Orchestrator> make_orchestrator(const std::string& name, asio::io_context& loop,
                                                OrchestratorOptions options);

}  // namespace pipeline::orchestrators
