/// @file
/// Reads texts and numbers of the engine's JSON responses. Missing members and those of another
/// type give empty values.
#pragma once

#include <cstdint>

#include <nlohmann/json.hpp>

#include "core/json_member.hpp"

namespace pipeline::docker {

using core::text_at;

/// Returns the number under this key of an object; 0 if it is missing, negative or not whole.
inline std::uint64_t number_at(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

}  // namespace pipeline::docker
