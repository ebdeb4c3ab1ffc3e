/// @file
/// Finds positions within the texts of a document, for errors in templates and conditions.
#pragma once

#include <cstddef>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "core/value.hpp"

namespace pipeline::spec {

/// Maps bytes of scalars to positions in the files.
class ScalarPlaces {
 public:
  /// @param sources the texts by Span::file
  explicit ScalarPlaces(std::vector<std::string_view> sources) : sources_(std::move(sources)) {}

  /// Returns the source position of the scalar's byte `offset`; that of the whole scalar where
  /// folding or escapes hide the offset.
  core::Span find(const core::Value& scalar, std::size_t offset, std::size_t length);

 private:
  std::vector<std::string_view> sources_;
  /// Lines of the texts by Span::file, once find() has needed them.
  std::map<unsigned, std::vector<std::string_view>> lines_;
};

}  // namespace pipeline::spec
