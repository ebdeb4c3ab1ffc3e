#include "serve/request.hpp"

#include <charconv>

#include "core/diagnostic.hpp"
#include "core/utf8.hpp"

namespace pipeline::serve {
namespace {

std::optional<unsigned char> byte_of(std::string_view hex) {
  unsigned value = 0;
  if (hex.size() != 2) return std::nullopt;
  const auto [end, error] = std::from_chars(hex.data(), hex.data() + 2, value, 16);
  if (error != std::errc() || end != hex.data() + 2) return std::nullopt;
  return static_cast<unsigned char>(value);
}

enum class TargetPart { path, query };

/// Decodes `%XX` and, in a query, `+` for a blank. Returns nothing for wrong escapes, and for a
/// result that is not UTF-8 or has a byte 0.
std::optional<std::string> decoded(std::string_view text, TargetPart part) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      const auto byte = byte_of(text.substr(i + 1, 2));
      if (!byte) return std::nullopt;
      result += static_cast<char>(*byte);
      i += 2;
    } else {
      result += part == TargetPart::query && text[i] == '+' ? ' ' : text[i];
    }
  }
  if (!core::is_utf8(result) || result.find('\0') != result.npos) return std::nullopt;
  return result;
}

}  // namespace

const std::string& PageRequest::value(std::string_view name) const {
  static const std::string none;
  for (const auto& [known, value] : query)
    if (known == name) return value;
  return none;
}

std::vector<std::string> PageRequest::values(std::string_view name) const {
  std::vector<std::string> found;
  for (const auto& [known, value] : query)
    if (known == name) found.push_back(value);
  return found;
}

std::int64_t PageRequest::number(std::string_view name, std::int64_t otherwise) const {
  const auto& text = value(name);
  if (text.empty()) return otherwise;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw core::InputError("'" + std::string(name) + "' must be a whole number");
  return number;
}

std::optional<PageRequest> parse_target(std::string_view target) {
  if (!target.starts_with('/')) return std::nullopt;
  PageRequest request;
  const auto mark = target.find('?');
  auto path = decoded(target.substr(0, mark), TargetPart::path);
  if (!path) return std::nullopt;
  request.path = std::move(*path);
  auto rest = mark == target.npos ? std::string_view() : target.substr(mark + 1);
  while (!rest.empty()) {
    const auto end = rest.find('&');
    const auto pair = rest.substr(0, end);
    rest = end == rest.npos ? std::string_view() : rest.substr(end + 1);
    if (pair.empty()) continue;
    const auto equals = pair.find('=');
    auto name = decoded(pair.substr(0, equals), TargetPart::query);
    auto value = decoded(equals == pair.npos ? "" : pair.substr(equals + 1), TargetPart::query);
    if (!name || !value) return std::nullopt;
    request.query.emplace_back(std::move(*name), std::move(*value));
  }
  return request;
}

}  // namespace pipeline::serve
