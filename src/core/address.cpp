#include "core/address.hpp"

#include <algorithm>
#include <string_view>

namespace pipeline::core {

std::string without_credentials(std::string text) {
  for (auto at = text.find("://"); at != text.npos; at = text.find("://", at)) {
    const bool is_ssh = std::string_view(text).substr(0, at).ends_with("ssh");
    at += 3;
    const auto end = std::min(text.find_first_of("/ \t\"'", at), text.size());
    const auto sign = std::string_view(text).substr(at, end - at).rfind('@');
    if (sign == std::string_view::npos) continue;
    const auto kept = is_ssh ? std::min(text.find(':', at), at + sign) - at : 0;
    text.erase(at + kept, is_ssh ? sign - kept : sign + 1);
  }
  return text;
}

}  // namespace pipeline::core
