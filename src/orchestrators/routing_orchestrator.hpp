/// @file
/// A run with several orchestrators (ZenML's step operators): each step runs on the orchestrator
/// that it names, other steps on the run's.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators {

/// @param main the orchestrator of steps that name none
/// @param make creates an orchestrator by name; called once for each name, when the first step with
/// that name is looked at
std::unique_ptr<Orchestrator> make_routing_orchestrator(
    std::string main, std::function<std::unique_ptr<Orchestrator>(const std::string& name)> make);

}  // namespace pipeline::orchestrators
