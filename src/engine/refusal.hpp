/// @file
/// A pipeline that is not run, for what was found wrong with its steps.
#pragma once

#include <filesystem>
#include <vector>

#include "core/diagnostic.hpp"

namespace pipeline::engine {

/// Throws InputError with all of them, each under the line where its step begins; returns if there
/// are none.
void refuse(std::vector<core::Diagnostic> wrong, const std::filesystem::path& file);

}  // namespace pipeline::engine
