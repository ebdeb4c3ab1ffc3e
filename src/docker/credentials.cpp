#include "docker/credentials.hpp"

#include <utility>

#include "core/base64.hpp"
#include "core/error.hpp"
#include "docker/config.hpp"
#include "docker/credential_helper.hpp"
#include "docker/json_text.hpp"

namespace pipeline::docker {
namespace {

using nlohmann::json;

/// The key of Docker Hub in docker's configuration: its address when it was the only registry.
constexpr const char* hub_key = "https://index.docker.io/v1/";

/// Encodes base64 with `-` and `_` and padding, as the engine requires.
std::string encode_for_url(const std::string& text) {
  auto encoded = core::encode_base64(text);
  for (auto& c : encoded) c = c == '+' ? '-' : c == '/' ? '_' : c;
  return encoded;
}

/// Returns `host:5000` for `https://host:5000/v1/`; keys have either form.
std::string host_of(std::string_view key) {
  if (const auto scheme = key.find("://"); scheme != key.npos) key.remove_prefix(scheme + 3);
  return std::string(key.substr(0, key.find('/')));
}

/// Returns true if a key of docker's configuration stands for the registry.
bool is_key_of(const std::string& key, const std::string& registry) {
  const auto host = host_of(key);
  if (registry == "docker.io")
    return host == "index.docker.io" || host == "docker.io" || host == "registry-1.docker.io";
  return host == registry;
}

Credentials from_entry(const json& entry) {
  Credentials found;
  if (!entry.is_object()) return found;
  found.username = text_at(entry, "username");
  found.password = text_at(entry, "password");
  found.identity_token = text_at(entry, "identitytoken");
  found.registry_token = text_at(entry, "registrytoken");
  if (const auto both = core::decode_base64(text_at(entry, "auth")); both && !both->empty()) {
    const auto colon = both->find(':');
    found.username = both->substr(0, colon);
    found.password =
        colon == both->npos
            ? std::string()
            : std::string(both->c_str() + colon + 1);  // Some clients pad with zero bytes.
  }
  return found;
}

Credentials from_auths(const json& config, const std::string& registry) {
  const auto auths = config.find("auths");
  if (auths == config.end() || !auths->is_object()) return {};
  for (const auto& [key, entry] : auths->items())
    if (is_key_of(key, registry))
      if (auto found = from_entry(entry); !found.empty()) return found;
  return {};
}

/// Returns the helper for this registry: its own, or the default one.
std::string helper_for(const json& config, const std::string& registry) {
  if (const auto helpers = config.find("credHelpers");
      helpers != config.end() && helpers->is_object())
    for (const auto& [key, helper] : helpers->items())
      if (is_key_of(key, registry) && helper.is_string()) return helper.get<std::string>();
  return text_at(config, "credsStore");
}

/// Returns the credentials to send, if a file has several kinds of them.
Credentials preferred(Credentials found) {
  if (!found.identity_token.empty()) return {{}, {}, std::move(found.identity_token), {}};
  if (!found.registry_token.empty()) return {{}, {}, {}, std::move(found.registry_token)};
  return found;
}

/// Returns the value of the header X-Registry-Auth.
std::string header_of(const Credentials& credentials, const std::string& server) {
  json header = json::object();
  if (!credentials.empty()) {
    header["serveraddress"] = server;
    if (!credentials.identity_token.empty()) {
      header["identitytoken"] = credentials.identity_token;
    } else if (!credentials.registry_token.empty()) {
      header["registrytoken"] = credentials.registry_token;
    } else {
      header["username"] = credentials.username;
      header["password"] = credentials.password;
    }
  }
  return encode_for_url(header.dump(-1, ' ', false, json::error_handler_t::replace));
}

}  // namespace

async::Task<RegistryAuth> registry_auth(std::string registry) {
  RegistryAuth auth;
  const std::string server = registry == "docker.io" ? hub_key : registry;
  Credentials credentials;
  json config = json::object();
  try {
    config = config_file();
  } catch (const core::EnvironmentError& error) {
    auth.notice = std::string("continuing without registry credentials: ") + error.what();
  }
  if (const auto helper = helper_for(config, registry); !helper.empty()) {
    const auto answer = co_await ask_credential_helper(helper, server, std::chrono::seconds(10));
    if (!answer.failure.empty())
      auth.notice =
          "continuing without the credential helper for " + registry + ": " + answer.failure;
    if (answer.username == "<token>") {
      credentials.identity_token = answer.secret;
    } else {
      credentials.username = answer.username;
      credentials.password = answer.secret;
    }
  }
  if (credentials.empty()) credentials = from_auths(config, registry);
  auth.credentials = preferred(std::move(credentials));
  auth.header = header_of(auth.credentials, server);
  co_return auth;
}

}  // namespace pipeline::docker
