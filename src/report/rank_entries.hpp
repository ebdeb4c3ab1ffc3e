/// @file
/// The processes of an attempt with nodes, as the pages have them (docs/json.md).
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "store/attempts.hpp"

namespace pipeline::report {

/// Adds the processes to the attempt's entry, and the rank that failed first. Adds nothing for an
/// attempt with one process.
/// @param position_of returns the position of a machine's name
void add_ranks(const std::vector<store::TaskRecord>& tasks,
               const std::function<std::size_t(const std::string&)>& position_of,
               nlohmann::json& entry);

/// Returns the rank whose failure is that of the step's last attempt, if it had several.
std::optional<unsigned> first_failed_rank(store::Attempts& attempts, const std::string& run,
                                          const std::string& step);

}  // namespace pipeline::report
