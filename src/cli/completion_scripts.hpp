/// @file
/// The scripts that `pipe completion` prints.
#pragma once

#include <string>
#include <vector>

#include "cli/completion_model.hpp"

namespace pipeline::cli {

std::string bash_completion(const std::vector<CompletedCommand>& commands);
std::string zsh_completion(const std::vector<CompletedCommand>& commands);
std::string fish_completion(const std::vector<CompletedCommand>& commands);

}  // namespace pipeline::cli
