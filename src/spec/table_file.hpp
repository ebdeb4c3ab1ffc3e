/// @file
/// Reads the rows of a matrix from a file.
#pragma once

#include <filesystem>

#include "settings/decode.hpp"
#include "spec/memory_budget.hpp"

namespace pipeline::spec {

/// Reads a table whose first line has the names of its columns. Returns a list of maps, one for
/// each row, as `include` of a matrix has it. Fields are separated by commas (RFC 4180), in a file
/// `*.tsv` by tabs. A field is a number if JSON writes that number in the same way, otherwise a
/// text. Returns an empty list after an error, which is reported.
/// @param place the file's name in the document, for messages
core::Value read_table(const std::filesystem::path& file, const core::Value& place,
                       MemoryBudget& budget, settings::Diagnostics& diagnostics);

}  // namespace pipeline::spec
