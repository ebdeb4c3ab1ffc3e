/// @file
/// The processes of an attempt with nodes, as the pages have them (docs/json.md).
#pragma once

#include <cstddef>
#include <cstdint>
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

/// Returns the most memory, in bytes, that the processes of a node have used: the limit of an
/// attempt is that of each of its nodes.
std::optional<std::uint64_t> memory_of_node(const store::AttemptRecord& attempt,
                                            const std::vector<store::TaskRecord>& tasks);

/// Returns the rank whose failure is that of the step's last attempt, if it had several.
std::optional<unsigned> first_failed_rank(store::Attempts& attempts, const std::string& run,
                                          const std::string& step);

}  // namespace pipeline::report
