/// @file
/// Makes one text of several.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pipeline::core {

inline std::string joined(const std::vector<std::string>& texts, std::string_view separator) {
  std::string all;
  for (const auto& text : texts) {
    if (&text != &texts.front()) all += separator;
    all += text;
  }
  return all;
}

}  // namespace pipeline::core
