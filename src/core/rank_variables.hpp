/// @file
/// Finds a process's rank (its number among the processes of a distributed step) in its variables,
/// as /proc/PID/environ shows them. The functions are inline, because the agent, the program that
/// starts a step's command in its pod or container, links no library of this project.
#pragma once

#include <algorithm>
#include <charconv>
#include <string_view>

namespace pipeline::core {

/// Returns the number at the beginning of a variable's value; -1 if there is none.
/// @param variables `NAME=VALUE`, each ended by a NUL
inline long number_of_variable(std::string_view variables, std::string_view name) {
  while (!variables.empty()) {
    const auto size = std::min(variables.find('\0'), variables.size());
    const auto variable = variables.substr(0, size);
    variables.remove_prefix(std::min(size + 1, variables.size()));
    if (!variable.starts_with(name) || variable.size() < name.size() + 2) continue;
    const char* const value = variable.data() + name.size() + 1;
    if (variable[name.size()] != '=' || *value < '0' || *value > '9') continue;
    long number = -1;
    std::from_chars(value, variable.data() + variable.size(), number);
    return number;
  }
  return -1;
}

/// Returns the rank of a process on a node with several ranks; -1 for any other process.
inline long rank_in_variables(std::string_view variables) {
  return number_of_variable(variables, "LOCAL_WORLD_SIZE") > 1
             ? number_of_variable(variables, "RANK")
             : -1;
}

}  // namespace pipeline::core
