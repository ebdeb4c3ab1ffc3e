/// @file
/// Fuzzes requests to the page's server: the target, and the headers with a request's origin. A
/// request without the token is never allowed.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/diagnostic.hpp"
#include "core/utf8.hpp"
#include "serve/guard.hpp"
#include "serve/request.hpp"

namespace {

constexpr std::string_view token = "0123456789abcdef0123456789abcdef";

/// Takes the next line off the text.
std::string_view line_of(std::string_view& text) {
  const auto end = text.find('\n');
  const auto line = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return line;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pipeline;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  const bool knows_token = text.find(token) != text.npos;
  const auto target = line_of(text);
  serve::RequestOrigin origin;
  if (const auto request = serve::parse_target(target)) {
    if (!request->path.starts_with('/') || !core::is_utf8(request->path)) __builtin_trap();
    for (const auto& [name, value] : request->query)
      if (!core::is_utf8(name) || value.find('\0') != value.npos) __builtin_trap();
    try {
      request->number("attempt", 1);
    } catch (const core::InputError&) {
    }
    request->values("run");
  }
  origin.host = line_of(text);
  origin.authorization = line_of(text);
  origin.fetch_site = line_of(text);
  origin.fetch_mode = line_of(text);
  origin.token = line_of(text);
  for (const char* address : {"127.0.0.1", "0.0.0.0", "::1"}) {
    const serve::Guard guard(std::string(token), address);
    const bool is_allowed = guard.judge(origin) == serve::Verdict::allowed;
    if (is_allowed && !knows_token) __builtin_trap();
    if (is_allowed && origin.host.find("evil") != origin.host.npos) __builtin_trap();
  }
  return 0;
}
