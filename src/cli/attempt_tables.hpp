/// @file
/// The phases and the usage of attempts, as rows of tables.
#pragma once

#include <string>
#include <vector>

#include "cli/text.hpp"
#include "store/run_store.hpp"

namespace pipeline::cli {

/// Returns `1`, or `0:2` for a MIG slice: the words of the setting `devices`.
std::string device_text(const event::Gpu& gpu);

/// Texts of cells; the text of an unknown value is empty.
struct UsageCells {
  std::string cpu, memory, limit, read, written;
};
UsageCells usage_cells(const core::Usage& usage);

/// An attempt, and the name of its row in a table.
struct NamedAttempt {
  std::string name;
  store::AttemptRecord attempt;
};

/// The columns of a table of attempts besides their names. The usage includes the node.
struct AttemptColumns {
  bool phases = false, usage = false;
};

/// @param first heading of the names
Table attempts_table(const std::string& first, const std::vector<NamedAttempt>& attempts,
                     AttemptColumns columns);

/// Returns a table of the processes of an attempt with nodes; empty for an attempt with one
/// process. If there are very many, the table has those that failed, and then the first ones.
/// @param rest the command that lists all processes, for the line below such a table
std::string ranks_text(std::vector<store::TaskRecord> tasks, const std::string& rest,
                       const Paint& paint);

}  // namespace pipeline::cli
