/// @file
/// Finds the values of a step's resources in the text of a pipeline file.
#pragma once

#include <optional>
#include <string_view>

#include "core/value.hpp"

namespace pipeline::spec {

class ResourcePlaces {
 public:
  /// @param text a pipeline file that has been read without errors; the spans refer to it
  explicit ResourcePlaces(std::string_view text);
  /// Returns the position of the step's own `settings.resources.NAME`; nothing if the value comes
  /// from the pipeline's settings or a profile.
  std::optional<core::Span> find(std::string_view step, std::string_view name) const;

 private:
  std::optional<core::Value> root_;
};

}  // namespace pipeline::spec
