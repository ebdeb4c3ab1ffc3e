/// @file
/// Finds positions within the texts of a document, for errors in templates and conditions.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "core/value.hpp"

namespace pipeline::spec {

/// Maps bytes of scalars to positions in the source.
class ScalarPlaces {
 public:
  explicit ScalarPlaces(std::string_view source) : source_(source) {}

  /// Returns the source position of the scalar's byte `offset`; that of the whole scalar where
  /// folding or escapes hide the offset.
  core::Span find(const core::Value& scalar, std::size_t offset, std::size_t length);

 private:
  std::string_view source_;
  std::vector<std::string_view> lines_;  ///< Filled only after the first problem.
};

}  // namespace pipeline::spec
