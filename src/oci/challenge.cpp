#include "oci/challenge.hpp"

#include <algorithm>

#include "core/text.hpp"

namespace pipeline::oci {
namespace {

void skip(std::string_view& text, std::string_view characters) {
  text.remove_prefix(std::min(text.find_first_not_of(characters), text.size()));
}

/// Takes `"quoted \" text"` or a word off the front.
std::string take_value(std::string_view& text) {
  std::string value;
  if (!text.starts_with('"')) {
    const auto end = std::min(text.find_first_of(", \t"), text.size());
    value = text.substr(0, end);
    text.remove_prefix(end);
    return value;
  }
  text.remove_prefix(1);
  while (!text.empty() && text.front() != '"') {
    if (text.front() == '\\' && text.size() > 1) text.remove_prefix(1);
    value += text.front();
    text.remove_prefix(1);
  }
  if (!text.empty()) text.remove_prefix(1);
  return value;
}

}  // namespace

std::optional<Challenge> read_challenge(std::string_view value) {
  const auto space = std::min(value.find(' '), value.size());
  const auto scheme = core::lower(value.substr(0, space));
  if (scheme != "bearer" && scheme != "basic") return std::nullopt;
  Challenge challenge;
  challenge.is_bearer = scheme == "bearer";
  value.remove_prefix(space);
  for (skip(value, ", \t"); !value.empty(); skip(value, ", \t")) {
    const auto equals = value.find('=');
    if (equals == value.npos) break;
    const auto name = core::lower(value.substr(0, equals));
    value.remove_prefix(equals + 1);
    auto text = take_value(value);
    if (name == "realm") challenge.realm = std::move(text);
    if (name == "service") challenge.service = std::move(text);
    if (name == "scope") challenge.scope = std::move(text);
  }
  return challenge;
}

std::optional<Challenge> challenge_of(const net::Response& response) {
  std::optional<Challenge> found;
  const auto [first, last] = response.headers.equal_range("www-authenticate");
  for (auto each = first; each != last; ++each) {
    auto challenge = read_challenge(each->second);
    if (challenge && (!found || challenge->is_bearer)) found = std::move(challenge);
    if (found && found->is_bearer) break;
  }
  return found;
}

}  // namespace pipeline::oci
