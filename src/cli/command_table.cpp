#include "cli/command_table.hpp"

#include <vector>

namespace pipeline::cli {

std::span<const CommandEntry> command_table() {
  static const auto commands = [] {
    std::vector<CommandEntry> all;
    for (const auto group : {pipeline_commands, record_commands, machine_commands})
      all.insert(all.end(), group().begin(), group().end());
    return all;
  }();
  return commands;
}

}  // namespace pipeline::cli
