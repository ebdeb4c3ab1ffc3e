#include "spec/hosts_reader.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <vector>

#include <nlohmann/json.hpp>

#include "spec/keys.hpp"
#include "spec/user_files.hpp"

namespace pipeline::spec {
namespace {

bool is_host_url(std::string_view text) {
  constexpr std::array schemes{"unix:///", "ssh://", "tcp://"};
  return text == "unix" || std::ranges::any_of(schemes, [text](std::string_view scheme) {
           return text.starts_with(scheme) && text.size() > scheme.size() &&
                  std::ranges::all_of(text, [](unsigned char c) { return c > ' ' && c < 0x7f; });
         });
}

std::string nearest_host(std::string_view text) {
  if (text.starts_with('/')) return "unix://" + std::string(text);
  return text.find("://") == text.npos ? "ssh://" + std::string(text) : std::string();
}

constexpr settings::Format host_url{
    "`unix` or `unix:///SOCKET`, `ssh://[USER@]HOST[:PORT]` or `tcp://HOST[:PORT]`", is_host_url,
    nullptr, nearest_host};

constexpr settings::Format host_address{
    "a host name or an IPv4 address, without a port", [](std::string_view text) {
      return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
        return std::isalnum(c) || c == '.' || c == '-' || c == '_';
      });
    }};

/// Reads a URL, or a map with one.
nlohmann::json read_host(const std::string& key, const core::Value& value,
                         const std::filesystem::path& folder, settings::Diagnostics& diagnostics) {
  nlohmann::json host;
  const bool is_map = value.kind == core::Value::Kind::map;
  const auto* url = is_map ? value.find("host") : &value;
  if (is_map) {
    static const std::vector<std::string> keys{"host", "address", "certificates"};
    settings::report_unknown_keys(value, keys, "an item of '" + key + "'", diagnostics);
    if (!url && !has_misspelt(value, "host"))
      settings::report(diagnostics, "missing-key", "an item of '" + key + "' has no `host`",
                       value.span, {"as in `{host: ssh://gpu2, address: 10.0.0.2}`"});
  }
  if (!url) return host;
  const auto text = settings::read_text(is_map ? "host" : key, *url, host_url, diagnostics);
  if (!text) return host;
  host["host"] = *text == "unix" ? "unix:///var/run/docker.sock" : *text;
  if (!is_map) return host;
  if (const auto* given = value.find("address"))
    if (const auto address = settings::read_text("address", *given, host_address, diagnostics))
      host["address"] = *address;
  if (const auto* given = value.find("certificates"))
    if (const auto path =
            settings::read_text("certificates", *given, settings::formats::path, diagnostics))
      host["certificates"] = user_path(*path, folder).string();
  return host;
}

}  // namespace

nlohmann::json read_hosts(const std::string& key, const core::Value& value,
                          const std::filesystem::path& folder, settings::Diagnostics& diagnostics) {
  auto hosts = nlohmann::json::array();
  if (value.kind != core::Value::Kind::list || value.items.empty()) {
    settings::report(diagnostics, "wrong-type",
                     "'" + key + "' must be a list of hosts, not " +
                         (value.items.empty() && value.kind == core::Value::Kind::list
                              ? "an empty one"
                              : settings::describe(value)),
                     value.span, {"as in `" + key + ": [unix, ssh://gpu2, tcp://gpu3:2376]`"});
    return hosts;
  }
  std::set<std::string> seen;
  for (const auto& item : value.items) {
    auto host = read_host(key, item, folder, diagnostics);
    if (host.is_null()) continue;
    const auto url = host["host"].get<std::string>();
    if (!seen.insert(url).second)
      settings::report(diagnostics, "bad-profile", "'" + key + "' lists " + url + " twice",
                       item.span, {}, "name each once: two nodes of a step can be on the same one");
    hosts.push_back(std::move(host));
  }
  return hosts;
}

}  // namespace pipeline::spec
