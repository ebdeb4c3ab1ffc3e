#include "docker/step_rights.hpp"

#include <algorithm>
#include <cctype>
#include <functional>
#include <string>

#include <nlohmann/json.hpp>

namespace pipeline::docker {
namespace {

using nlohmann::json;

/// Returns true if a word in the list of this name satisfies the condition.
bool has(const json& host, const char* list, const std::function<bool(const std::string&)>& is) {
  const auto found = host.find(list);
  return found != host.end() && std::ranges::any_of(*found, [&](const json& word) {
           return word.is_string() && is(word.get<std::string>());
         });
}

}  // namespace

void withhold_rights(json& host) {
  if (host.is_null()) host = json::object();
  if (host.value("Privileged", false)) return;
  const auto sets_privileges = [](const std::string& word) {
    return word.starts_with("no-new-privileges");
  };
  if (!has(host, "SecurityOpt", sets_privileges))
    host["SecurityOpt"].push_back("no-new-privileges");
  for (const std::string right : {"MKNOD", "SETFCAP"}) {
    const auto names_it = [&](std::string word) {
      std::ranges::transform(word, word.begin(),
                             [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
      return word == "ALL" || word == right || word == "CAP_" + right;
    };
    if (!has(host, "CapAdd", names_it) && !has(host, "CapDrop", names_it))
      host["CapDrop"].push_back(right);
  }
}

}  // namespace pipeline::docker
