/// @file
/// Reads values from JSON outputs, which steps wrote.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>
#include <pipeline/spec.hpp>

#include "store/artifact_store.hpp"
#include "store/run_store.hpp"

namespace pipeline::engine {

/// The reading of whole numbers of more than 64 bits.
enum class LargeIntegers {
  as_numbers,  ///< As the nearest floating-point numbers.
  as_texts,    ///< As texts with all of their digits.
};

/// Returns the member of the JSON output that `value` names. Throws std::runtime_error, with the
/// reason, if there is no such member, or if the output is larger than `max_bytes`.
nlohmann::json read_member(const store::OutputRecord& output, const OutputValue& value,
                           store::ArtifactStore& artifacts, std::uint64_t max_bytes,
                           LargeIntegers large_integers = LargeIntegers::as_numbers);

/// Returns the value as JSON text for a message; a long text is cut.
std::string shown_json(const nlohmann::json& value);

}  // namespace pipeline::engine
