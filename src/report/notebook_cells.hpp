/// @file
/// An executed Jupyter notebook, as pages show it.
#pragma once

#include <cstddef>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace pipeline::report {

/// Returns the cells of a notebook, each with `k` its kind, `s` its source, and `o` its outputs:
/// `t` a text, `p` a PNG in base64, or `h` HTML of harmless elements, for a frame without scripts.
/// Returns null if the text is not a notebook, or if the cells are larger than `max_bytes`.
nlohmann::json notebook_cells(std::string_view text, std::size_t max_bytes);

}  // namespace pipeline::report
