#include "core/address.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

namespace pipeline::core {
namespace {

constexpr std::string_view after_host = "/ \t\"'", after_address = " \t\"'";

/// The part of a text that is a login.
struct Login {
  std::size_t begin;
  std::size_t end;  ///< Position of the `@`.
};

/// Returns the login of the address whose `://` begins at `at`; for ssh, only the password.
std::optional<Login> login_of(std::string_view text, std::size_t at) {
  const bool is_ssh = text.substr(0, at).ends_with("ssh");
  at += 3;
  const auto end = std::min(text.find_first_of(after_host, at), text.size());
  const auto size = text.substr(at, end - at).rfind('@');
  if (size == std::string_view::npos) return std::nullopt;
  const auto begin = is_ssh ? std::min(text.find(':', at), at + size) : at;
  return Login{begin, at + size};
}

}  // namespace

std::string without_credentials(std::string text) {
  for (auto at = text.find("://"); at != text.npos; at = text.find("://", at)) {
    const auto login = login_of(text, at);
    at += 3;
    // The `@` goes with the user name; ssh keeps both.
    if (login) text.erase(login->begin, login->end - login->begin + (login->begin == at ? 1 : 0));
  }
  return text;
}

std::string masked_addresses(std::string text) {
  const auto mask = [&text](std::size_t begin, std::size_t end) {
    std::fill(text.begin() + static_cast<std::ptrdiff_t>(begin),
              text.begin() + static_cast<std::ptrdiff_t>(end), '*');
  };
  for (auto at = text.find("://"); at != text.npos; at = text.find("://", at)) {
    if (const auto login = login_of(text, at)) mask(login->begin, login->end);
    at += 3;
    const auto end = std::min(text.find_first_of(after_address, at), text.size());
    if (const auto query = text.find('?', at); query < end) mask(query + 1, end);
  }
  return text;
}

}  // namespace pipeline::core
