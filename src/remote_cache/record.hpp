/// @file
/// Reads a result's record in a remote store. Any user with write access may have written it.
#pragma once

#include <optional>
#include <string_view>

#include "engine/cache/remote_cache.hpp"

namespace pipeline::remote_cache {

inline constexpr int record_format = 1;

/// The folder of the records in the store, each under the key of its step.
inline constexpr const char* results_folder = "results/";

/// Returns nothing for a record of a later version of pipe. Throws std::invalid_argument if the
/// text is not a record.
std::optional<engine::RemoteResult> read_record(std::string_view text);

}  // namespace pipeline::remote_cache
