/// @file
/// A run in several places (ZenML's step operators): each step where it says, the others where the
/// run does.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators {

/// @param main the orchestrator of steps that name none
/// @param make makes one by its name; called once a name, when a step of that place is first asked
/// about
std::unique_ptr<Orchestrator> make_routing_orchestrator(
    std::string main, std::function<std::unique_ptr<Orchestrator>(const std::string& name)> make);

}  // namespace pipeline::orchestrators
