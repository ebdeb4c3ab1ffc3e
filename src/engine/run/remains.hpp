/// @file
/// Removes what attempts leave behind.
#pragma once

#include <string>

#include "async/task.hpp"
#include "engine/run_context.hpp"

namespace pipeline::engine {

/// Removes what attempts of ended runs have left outside of this process, among them those of this
/// run's earlier driver that were not joined. A failure is a notice.
async::Task<> remove_orphans(const RunContext& context);

/// Removes the attempts' folders. Some files may belong to another user, for example those of a
/// container that ran as root; the results are valid nevertheless.
/// @return a description of what could not be removed
std::string remove_work_folders(const RunContext& context, const std::string& run_id);

}  // namespace pipeline::engine
