/// @file
/// Finds the missing file in a failed step's output.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pipeline::spec {

/// The names in lines that report something missing, likeliest first.
struct MissingNames {
  std::vector<std::string> paths;    ///< As printed; can be absolute.
  std::vector<std::string> modules;  ///< Dotted names of Python modules.
};
/// Finds lines such as `cat: x.csv: No such file or directory` in the output of a failed step.
MissingNames missing_names(std::string_view output);

}  // namespace pipeline::spec
