/// @file
/// Reads the code of Jupyter notebooks.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeline::core {

inline bool is_notebook(std::string_view path) { return path.ends_with(".ipynb"); }

/// Returns the sources of the code cells. A cell with tags, which papermill reads, begins with a
/// comment that has the tags. Returns nothing if the file is not a notebook, or is larger than
/// read_file() reads.
std::optional<std::vector<std::string>> notebook_code(const std::filesystem::path& file);

/// Returns the cells as one Python text: `%run x.py` as an import; other magics and shell commands
/// become empty lines.
std::string python_of(const std::vector<std::string>& cells);

}  // namespace pipeline::core
