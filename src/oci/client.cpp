#include "oci/client.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <type_traits>

#include <fcntl.h>

#include "async/sleep.hpp"
#include "core/base64.hpp"
#include "core/bounded_json.hpp"
#include "core/digest.hpp"
#include "core/error.hpp"
#include "core/excerpt.hpp"
#include "core/file.hpp"
#include "core/json_member.hpp"
#include "docker/reference.hpp"
#include "docker/registry_errors.hpp"
#include "fetch/address.hpp"
#include "net/trust.hpp"
#include "net/url.hpp"
#include "net/wanted_pause.hpp"

namespace pipeline::oci {
namespace {

namespace fs = std::filesystem;
using core::text_at;
using nlohmann::json;

constexpr std::size_t max_document_size = std::size_t{16} << 20, max_token_size = 64 << 10;
constexpr unsigned max_redirects = 5;
constexpr std::chrono::seconds max_silence{60};

/// Returns true for a name or address that always means this machine.
bool is_loopback(std::string_view host) {
  const auto name =
      host.starts_with('[') ? host.substr(0, host.find(']') + 1) : host.substr(0, host.find(':'));
  return name == "localhost" || name == "[::1]" ||
         (name.starts_with("127.") && name.find_first_not_of("0123456789.") == name.npos);
}

/// Returns the options for a registry, with its own certificate authority if that is in one of the
/// folders that engines read, too.
net::TlsOptions tls_of(const std::string& url) {
  net::TlsOptions tls;
  const auto host = url.substr(0, url.find('/', url.find("://") + 3)).substr(url.find("://") + 3);
  std::error_code error;
  for (const auto* folder : {"/etc/docker/certs.d", "/etc/containers/certs.d"})
    if (const auto file = fs::path(folder) / host / "ca.crt";
        tls.ca_file.empty() && fs::is_regular_file(file, error))
      tls.ca_file = file.string();
  return tls;
}

/// Returns the message, else the code, of `{"errors": [{"code": ..., "message": ...}]}`; empty for
/// another body.
std::string error_text_of(const net::Response& response) {
  const auto document = core::parse_json(response.body);
  const auto errors = document.is_object() ? document.value("errors", json()) : json();
  if (errors.is_array() && !errors.empty() && errors[0].is_object()) {
    auto text = text_at(errors[0], "message");
    if (text.empty()) text = text_at(errors[0], "code");
    if (!text.empty()) return core::excerpt(text);
  }
  return {};
}

std::string name_of(const Repository& repository) {
  const auto name = repository.registry + "/" + repository.name;
  return name + (is_digest(repository.tag) ? "@" : ":") + repository.tag;
}

core::EnvironmentError refusal(const Repository& repository, const net::Response& response) {
  auto text = error_text_of(response);
  if (text.empty() && response.status == 401) text = "unauthorized";
  if (text.empty() && response.status == 404) text = "manifest unknown";
  return core::EnvironmentError("cannot pull " + name_of(repository) + ": " + repository.registry +
                                    " answered " + std::to_string(response.status) +
                                    (text.empty() ? "" : ": " + text),
                                docker::registry_advice(text, repository.registry));
}

core::EnvironmentError pull_error(const Repository& repository, const std::string& why) {
  return core::EnvironmentError("cannot pull " + name_of(repository) + ": " + why);
}

/// Calls a function that reads a document, and adds the image's name to the function's errors.
template <class Function>
std::invoke_result_t<Function> with_image_name(const Repository& repository, Function function) {
  try {
    return function();
  } catch (const core::EnvironmentError& error) {
    throw pull_error(repository, error.what());
  }
}

core::EnvironmentError unanswered(const Repository& repository, const net::TransportError& error) {
  std::string why = error.what();  // `GET URL: ...`, whose query may be a signature.
  if (const auto query = why.find('?'); query != why.npos)
    why.erase(query, why.find(": ", query) - query);
  return core::EnvironmentError(
      "cannot pull " + name_of(repository) + ": " + why,
      {net::is_about_trust(error)
           ? "if the registry has an authority of its own, put its certificate at "
             "/etc/docker/certs.d/" +
                 repository.registry + "/ca.crt, or name a file with all in SSL_CERT_FILE"
           : "check this machine's network and proxy (https_proxy), and the image's name"});
}

}  // namespace

Repository repository_of(const std::string& reference) {
  Repository repository;
  auto [name, tag] = docker::split_reference(reference);
  repository.registry = docker::registry_of(reference);
  repository.tag = tag;
  if (docker::names_registry(reference)) name.erase(0, name.find('/') + 1);
  const bool is_hub = repository.registry == "docker.io";
  if (is_hub && name.find('/') == name.npos) name.insert(0, "library/");
  repository.name = name;
  const auto host = is_hub ? std::string("registry-1.docker.io") : repository.registry;
  repository.url =
      (is_loopback(host) ? "http://" : "https://") + host + "/v2/" + repository.name + "/";
  return repository;
}

async::Task<Image> Client::find(std::string reference, std::string platform,
                                core::CancelSource& cancel) {
  const auto repository = repository_of(reference);
  if (platform.empty()) platform = own_platform();
  std::string digest = is_digest(repository.tag) ? repository.tag : std::string();
  if (digest.empty() && repository.tag.find(':') != repository.tag.npos)
    throw pull_error(repository, "its digest is not a SHA-256");
  auto text = co_await text_of(repository, "manifests/" + repository.tag, accepted_manifests(),
                               digest, cancel);
  if (digest.empty()) digest = "sha256:" + core::sha256(text).hex();
  if (const auto document = core::parse_json(text); is_index(document)) {
    digest =
        with_image_name(repository, [&] { return choose_manifest(document, platform).digest; });
    text =
        co_await text_of(repository, "manifests/" + digest, accepted_manifests(), digest, cancel);
  }
  const auto manifest =
      with_image_name(repository, [&] { return read_manifest(core::parse_json(text)); });
  const auto config = co_await text_of(repository, "blobs/" + manifest.config.digest, "",
                                       manifest.config.digest, cancel);
  Image image;
  image.manifest = digest;
  image.layers = manifest.layers;
  image.description =
      with_image_name(repository, [&] { return describe(core::parse_json(config), manifest); });
  co_return image;
}

async::Task<std::string> Client::text_of(const Repository& repository, std::string path,
                                         std::string accept, std::string digest,
                                         core::CancelSource& cancel) {
  std::string text;
  Sink sink;
  sink.begin = [&] { text.clear(); };
  sink.write = [&](std::string_view bytes) {
    if (text.size() + bytes.size() > max_document_size)
      throw pull_error(repository, "a manifest is larger than 16 MiB");
    text += bytes;
  };
  co_await get(repository, path, accept, sink, cancel);
  if (!digest.empty() && "sha256:" + core::sha256(text).hex() != digest)
    throw pull_error(repository,
                     repository.registry + " has sent another content than that of " + digest);
  co_return text;
}

async::Task<> Client::download(std::string reference, Blob blob, fs::path file,
                               core::CancelSource& cancel) {
  const auto repository = repository_of(reference);
  core::Descriptor opened;
  core::Hasher hasher;
  std::uint64_t size = 0;
  Sink sink;
  sink.begin = [&] {
    opened = core::Descriptor(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!opened) throw core::system_error("cannot write " + file.string(), errno);
    hasher.finish();
    size = 0;
  };
  sink.write = [&](std::string_view bytes) {
    size += bytes.size();
    if (size > blob.size) throw pull_error(repository, "a layer is larger than its manifest says");
    hasher.update(bytes);
    core::write_fully(opened.get(), bytes, file);
  };
  co_await get(repository, "blobs/" + blob.digest, "", sink, cancel);
  if (size != blob.size || "sha256:" + hasher.finish().hex() != blob.digest)
    throw pull_error(repository,
                     repository.registry + " has sent another content than that of " + blob.digest);
}

/// Requests a path of the repository; repeats the request if the server does not answer or is busy.
async::Task<> Client::get(const Repository& repository, std::string path, std::string accept,
                          const Sink& sink, core::CancelSource& cancel) {
  async::Backoff backoff(retries_);
  for (;;) {
    std::optional<core::EnvironmentError> failed;
    std::optional<std::chrono::seconds> pause;
    bool is_final = false;
    try {
      sink.begin();
      const auto response =
          co_await try_once(repository, repository.url + path, accept, sink, cancel);
      if (response.status < 300) co_return;
      failed = refusal(repository, response);
      pause = net::wanted_pause(response);
      is_final = response.status != 429 && response.status < 500;
    } catch (const net::TransportError& error) {
      failed = unanswered(repository, error);
      is_final = net::is_about_trust(error);
    }
    if (cancel.level() != core::StopLevel::none)
      throw core::EnvironmentError("stopped while an image was pulled");
    if (is_final || backoff.exhausted()) throw *failed;
    co_await async::sleep(backoff.next(pause), &cancel);
  }
}

/// Follows redirections, without sending the login to another host, and logs in if the registry
/// asks for a login.
async::Task<net::Response> Client::try_once(const Repository& repository, std::string url,
                                            std::string accept, const Sink& sink,
                                            core::CancelSource& cancel) {
  bool has_logged_in = false;
  for (unsigned redirects = 0; redirects <= max_redirects;) {
    net::Request request;
    request.url = url;
    request.tls = tls_of(url);
    request.silence = max_silence;
    if (!accept.empty()) request.headers.push_back("Accept: " + accept);
    const bool is_own = fetch::has_same_host(url, repository.url);
    if (const auto known = authorizations_.find(repository.url);
        is_own && known != authorizations_.end() && !known->second.empty())
      request.headers.push_back("Authorization: " + known->second);
    const auto response = co_await http_.send(std::move(request), sink.write, &cancel);
    if (response.status == 401 && is_own && !has_logged_in) {
      has_logged_in = true;
      co_await log_in(repository, response, cancel);
      continue;
    }
    if (response.status < 301 || response.status > 308 || response.header("location").empty())
      co_return response;
    ++redirects;
    const auto target = fetch::redirected(url, response.header("location"));
    if (target.empty())
      throw pull_error(repository,
                       repository.registry + " redirects to an address that pipe does not follow");
    url = target;
  }
  throw pull_error(repository, "more than five redirections");
}

async::Task<> Client::log_in(const Repository& repository, const net::Response& refused,
                             core::CancelSource& cancel) {
  const auto challenge = challenge_of(refused);
  if (!challenge) throw refusal(repository, refused);
  const auto auth = co_await docker::registry_auth(repository.registry);
  if (!auth.notice.empty()) notices_.insert(auth.notice);
  const auto& login = auth.credentials;
  std::string authorization;
  if (!login.registry_token.empty())
    authorization = "Bearer " + login.registry_token;
  else if (challenge->is_bearer)
    authorization = "Bearer " + co_await token_of(repository, *challenge, login, cancel);
  else if (!login.username.empty())
    authorization = "Basic " + core::encode_base64(login.username + ":" + login.password);
  authorizations_[repository.url] = std::move(authorization);
}

async::Task<std::string> Client::token_of(const Repository& repository, Challenge challenge,
                                          docker::Credentials login, core::CancelSource& cancel) {
  const bool is_plain = repository.url.starts_with("http://");
  const auto& realm = challenge.realm;
  const bool is_allowed =
      realm.starts_with("https://") || (is_plain && realm.starts_with("http://"));
  if (!is_allowed || (fetch::is_local(realm) && !fetch::is_local(repository.url)))
    throw pull_error(repository, repository.registry + " names an address for logins, '" +
                                     core::excerpt(realm) + "', that pipe does not trust");
  if (challenge.scope.empty()) challenge.scope = "repository:" + repository.name + ":pull";
  const auto fields = "service=" + net::url_encode(challenge.service) +
                      "&scope=" + net::url_encode(challenge.scope);
  net::Request request;
  request.url = realm;
  request.tls = tls_of(realm);
  request.timeout = max_silence;
  if (!login.identity_token.empty()) {
    request.method = "POST";
    request.headers.emplace_back("Content-Type: application/x-www-form-urlencoded");
    request.body = "grant_type=refresh_token&client_id=pipe&" + fields +
                   "&refresh_token=" + net::url_encode(login.identity_token);
  } else {
    request.url += (realm.find('?') == realm.npos ? "?" : "&") + fields;
    if (!login.username.empty())
      request.headers.push_back("Authorization: Basic " +
                                core::encode_base64(login.username + ":" + login.password));
  }
  const auto response = co_await http_.send(std::move(request), {}, &cancel);
  if (response.status >= 300) throw refusal(repository, response);
  const auto answer = core::parse_json(response.body);
  std::string token;
  if (answer.is_object()) {
    token = text_at(answer, "token");
    if (token.empty()) token = text_at(answer, "access_token");
  }
  if (token.empty() || token.size() > max_token_size)
    throw pull_error(repository, "the registry's address for logins, '" + core::excerpt(realm) +
                                     "', gave no token");
  co_return token;
}

}  // namespace pipeline::oci
