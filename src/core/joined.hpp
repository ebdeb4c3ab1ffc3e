/// @file
/// Makes one text of several.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace pipeline::core {

/// Joins the texts that `text_of` makes of the items.
template <class Items, class TextOf = std::identity>
std::string joined(const Items& items, std::string_view separator, const TextOf& text_of = {}) {
  std::string all;
  bool is_first = true;
  for (const auto& item : items) {
    if (!is_first) all += separator;
    is_first = false;
    all += std::invoke(text_of, item);
  }
  return all;
}

}  // namespace pipeline::core
