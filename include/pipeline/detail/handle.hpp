/// @file
/// Tells handles of results from other types.
#pragma once

#include <type_traits>

namespace pipeline {
struct AnyArtifact;
struct StepHandle;
}  // namespace pipeline

namespace pipeline::detail {

/// The type of a handle that Pipeline::add() or map() returns.
template <class T>
concept Handle = std::is_base_of_v<AnyArtifact, T> || std::is_base_of_v<StepHandle, T>;

}  // namespace pipeline::detail
