/// @file
/// Reading a failed step's output for the file that it lacked.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pipeline::spec {

/// What the lines that complain of something missing name, likeliest first.
struct MissingNames {
  std::vector<std::string> paths;    ///< As printed; absolute ones, too.
  std::vector<std::string> modules;  ///< Python's, dotted.
};
MissingNames missing_names(std::string_view output);

}  // namespace pipeline::spec
