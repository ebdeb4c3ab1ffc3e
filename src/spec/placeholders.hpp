/// @file
/// Fills in `${params.X}` in settings, times, the cache's texts, folders and data, when the file is
/// read; for an instance of a matrix, with the instance's own values.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include <pipeline/json.hpp>

#include "core/value.hpp"
#include "settings/decode.hpp"
#include "spec/memory_budget.hpp"

namespace pipeline::spec {

/// Returns true for a key of a pipeline or step whose texts may name parameters.
bool is_filled_key(std::string_view key);

/// Returns true if a text of the value, however deep, has a `${params.X}`, or a `$${params.X}`, of
/// which filled() makes the literal text `${params.X}`.
bool names_parameters(const core::Value& value);

/// Adds the names of the parameters that are filled into keys of the file and of its steps, and
/// into their inputs.
void add_filled_names(const core::Value& file, std::set<std::string>& names);

/// Returns the value with all parameters filled in. Reports references to parameters that do not
/// exist, and texts for which the budget does not suffice.
core::Value filled(const core::Value& value, const std::map<std::string, Json>& parameters,
                   MemoryBudget& budget, settings::Diagnostics& diagnostics);

}  // namespace pipeline::spec
