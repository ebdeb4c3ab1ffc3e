#include "settings/image_reference.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "core/text.hpp"

namespace pipeline::settings {
namespace {

using core::all;
using core::is_alnum;
using core::is_digit;
using core::is_hex_digit;
using core::is_lower;
using core::is_upper;
using core::split;

/// Accepts runs of `a-z0-9`, separated by one `.`, one or two `_`, or any number of `-`.
bool is_path_component(std::string_view text) {
  if (text.empty()) return false;
  for (std::size_t i = 0; i < text.size();) {
    if (!is_lower(text[i]) && !is_digit(text[i])) return false;
    while (i < text.size() && (is_lower(text[i]) || is_digit(text[i]))) ++i;
    if (i == text.size()) return true;
    const auto start = i;
    while (i < text.size() && text[i] == text[start] &&
           (text[i] == '.' || text[i] == '_' || text[i] == '-'))
      ++i;
    const auto length = i - start;
    if (length == 0 || (text[start] == '.' && length > 1) || (text[start] == '_' && length > 2) ||
        i == text.size())
      return false;
  }
  return true;
}

/// Accepts `name.example:5000`, `[::1]:5000`; the port is optional.
bool is_host(std::string_view text) {
  const auto address_end = text.starts_with('[') ? text.find(']') : 0;
  if (address_end == std::string_view::npos) return false;
  if (const auto colon = text.find(':', address_end); colon != std::string_view::npos) {
    const auto port = text.substr(colon + 1);
    if (port.empty() || port.size() > 5 || !all(port, is_digit)) return false;
    text = text.substr(0, colon);
  }
  if (address_end > 0)
    return text.size() == address_end + 1 && address_end > 1 &&
           all(text.substr(1, address_end - 1), [](char c) {
             return is_digit(c) || c == ':' || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
           });
  const auto parts = split(text, '.');
  return std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
    return !part.empty() && part.front() != '-' && part.back() != '-' &&
           all(part, [](char c) { return is_alnum(c) || c == '-'; });
  });
}

/// Accepts the algorithms that engines accept, each with its number of digits.
bool is_digest(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::size_t>, 3> algorithms{
      {{"sha256:", 64}, {"sha384:", 96}, {"sha512:", 128}}};
  return std::ranges::any_of(algorithms, [&](const auto& each) {
    return text.starts_with(each.first) && text.size() == each.first.size() + each.second &&
           all(text.substr(each.first.size()), is_hex_digit);
  });
}

}  // namespace

std::string_view registry_host(std::string_view reference) {
  const auto slash = reference.find('/');
  if (slash == reference.npos) return {};
  const auto first = reference.substr(0, slash);
  const bool is_registry = first.find_first_of(".:") != first.npos || first == "localhost" ||
                           std::ranges::any_of(first, is_upper);
  return is_registry ? first : std::string_view();
}

bool is_image_repository(std::string_view text) {
  if (text.empty() || text.size() > 255) return false;
  // A first part that cannot be a registry, though it looks like one, may belong to the name:
  // `a_b.c/x`.
  if (const auto host = registry_host(text); !host.empty() && is_host(host))
    text.remove_prefix(host.size() + 1);
  const auto parts = split(text, '/');
  return std::all_of(parts.begin(), parts.end(), is_path_component);
}

bool is_image_tag(std::string_view text) {
  return !text.empty() && text.size() <= 128 && (is_alnum(text[0]) || text[0] == '_') &&
         all(text, [](char c) { return is_alnum(c) || c == '_' || c == '.' || c == '-'; });
}

bool is_image_reference(std::string_view text) {
  if (const auto at = text.find('@'); at != std::string_view::npos) {
    if (!is_digest(text.substr(at + 1))) return false;
    text = text.substr(0, at);
  }
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || text.find('/', colon) != std::string_view::npos)
    return is_image_repository(text);
  return is_image_repository(text.substr(0, colon)) && is_image_tag(text.substr(colon + 1));
}

}  // namespace pipeline::settings
