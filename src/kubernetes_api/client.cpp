#include "kubernetes_api/client.hpp"

#include <cctype>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "async/sleep.hpp"
#include "core/bounded_json.hpp"
#include "core/excerpt.hpp"
#include "core/log.hpp"
#include "kubernetes_api/json.hpp"
#include "net/silence.hpp"
#include "net/trust.hpp"
#include "net/url.hpp"

namespace pipeline::kubernetes_api {
namespace {

using nlohmann::json;

/// A refusal together with the pause that the server asks for (Retry-After).
class RetryableError : public ApiError {
 public:
  RetryableError(const ApiError& error, std::optional<std::chrono::seconds> after)
      : ApiError(error), after_(after) {}
  std::optional<std::chrono::seconds> after() const { return after_; }

 private:
  std::optional<std::chrono::seconds> after_;
};

std::optional<std::chrono::seconds> retry_after(const net::Response& response) {
  const auto text = response.header("retry-after");
  int seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || seconds < 0) return std::nullopt;
  return std::chrono::seconds(seconds);
}

std::string message_of(const net::Response& response, const json& status) {
  if (const auto message = text_at(status, "/message"); !message.empty())
    return core::excerpt(message);
  std::string text = response.body.substr(0, 300);
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  while (text.ends_with(' ')) text.pop_back();
  return "status " + std::to_string(response.status) + (text.empty() ? "" : ": " + text);
}

/// Returns the text of a Warning header, `299 - "text"` (RFC 9111).
std::string text_of_warning(std::string_view header) {
  const auto first = header.find('"'), last = header.rfind('"');
  if (first == last) return std::string(header);
  std::string text;
  for (auto i = first + 1; i < last; ++i) {
    if (header[i] == '\\' && i + 1 < last) ++i;
    text += static_cast<unsigned char>(header[i]) < 0x20 ? ' ' : header[i];
  }
  return text;
}

}  // namespace

std::string host_and_port(const std::string& url) {
  const auto scheme = url.find("://");
  const auto begin = scheme == url.npos ? 0 : scheme + 3;
  auto host = url.substr(begin, url.find('/', begin) - begin);
  const auto after_address = host.starts_with('[') ? host.find(']') : 0;
  if (host.find(':', after_address) == host.npos)
    host += url.starts_with("http://") ? ":80" : ":443";
  return host;
}

std::vector<std::string> advice_for(long status, const std::string& reason,
                                    const std::string& message) {
  if (status == 401)
    return {
        "the credentials in the kubeconfig are wrong or have expired: log in again, or ask for new "
        "ones"};
  if (message.find("exceeded quota") != message.npos)
    return {
        "the namespace's quota is used up: wait for other work to end, ask for less under "
        "`resources`, or have the quota raised"};
  if (message.find("is being terminated") != message.npos)
    return {"the namespace is being deleted: name another one with --namespace"};
  if (status == 403)
    return {
        "`pipe kubernetes rbac` prints the Role that is needed; a cluster's administrator applies "
        "it"};
  if (status == 404 && message.find("namespaces \"") != message.npos)
    return {"name another namespace with --namespace, or make it: `kubectl create namespace NAME`"};
  if (reason == "Invalid" || status == 422)
    return {
        "the cluster refuses the object made from the step's settings; `pipe render -o kubernetes` "
        "prints it"};
  return {};
}

bool is_retryable(const ApiError& error) { return error.status() == 429 || error.status() >= 500; }

Client::Client(asio::io_context& loop, ClusterAccess access, async::RetryPolicy retry_policy)
    : loop_(loop),
      access_(std::move(access)),
      retry_policy_(retry_policy),
      credentials_(access_),
      http_(loop) {}

std::string Client::path(std::string_view group, std::string_view kind,
                         std::string_view name) const {
  std::string text = group.empty() ? "/api/v1" : "/apis/" + std::string(group);
  text += "/namespaces/" + net::url_encode(access_.name_space) + "/" + std::string(kind);
  return name.empty() ? text : text + "/" + net::url_encode(name);
}

async::Task<net::Request> Client::request_of(ApiCall call) {
  net::Request request;
  request.method = call.method;
  request.url = access_.server + call.path;
  request.tls = access_.tls;
  request.proxy = access_.proxy;
  if (!access_.tls_server_name.empty()) {
    const auto address = host_and_port(access_.server);
    request.address = address;
    request.headers.push_back("Host: " + address);
    const auto scheme_end = access_.server.find("://") + 3;
    const auto host_end = access_.server.find('/', scheme_end);
    request.url = access_.server.substr(0, scheme_end) + access_.tls_server_name +
                  address.substr(address.rfind(':')) +
                  (host_end == std::string::npos ? "" : access_.server.substr(host_end)) +
                  call.path;
  }
  request.headers.push_back("Accept: " + call.accept);
  request.headers.push_back("User-Agent: pipe");
  request.timeout = call.timeout;
  if (!call.on_body) request.silence = net::max_silence();
  if (!call.body.is_null()) {
    request.body = call.body.dump(-1, ' ', false, json::error_handler_t::replace);
    request.headers.push_back("Content-Type: " + call.body_type);
  }
  co_await credentials_.apply(request);
  if (core::log::debug_enabled()) core::log::debug("kubernetes: " + call.method + " " + call.path);
  co_return request;
}

async::Task<net::Response> Client::try_once(ApiCall call, unsigned long& version) {
  auto request = co_await request_of(call);
  version = credentials_.version();
  std::function<void(const net::Response&)> on_headers;
  if (call.on_open)
    on_headers = [open = call.on_open](const net::Response& response) {
      if (response.status < 300) open();
    };
  co_return co_await http_.send(std::move(request), std::move(call.on_body), call.cancel,
                                std::move(on_headers));
}

/// Shows the server's warnings to the user, for example policies that a pod violates, or APIs that
/// newer servers will remove.
void Client::show_warnings(const net::Response& response) {
  const auto [begin, end] = response.headers.equal_range("warning");
  for (auto each = begin; each != end; ++each)
    if (shown_.insert(each->second).second)
      core::log::warn("the cluster warns: " + core::excerpt(text_of_warning(each->second)));
}

async::Task<net::Response> Client::send(ApiCall call) {
  unsigned long version = 0;
  auto response = co_await try_once(call, version);
  if (response.status == 401 && credentials_.discard(version))
    response = co_await try_once(call, version);
  show_warnings(response);
  if (response.status < 300) co_return response;
  throw_refusal(call.what, response);
}

void throw_refusal(const std::string& what, const net::Response& response) {
  const auto status = core::parse_json(response.body);
  const auto reason = text_at(status, "/reason");
  const auto message = message_of(response, status);
  std::vector<Cause> causes;
  for (const auto& cause : list_at(status, "/details/causes"))
    if (const auto field = text_at(cause, "/field"); !field.empty())
      causes.push_back({core::excerpt(field), core::excerpt(text_at(cause, "/message"))});
  ApiError error(response.status, reason, "cannot " + what + ": " + message,
                 advice_for(response.status, reason, message), std::move(causes));
  if (is_retryable(error)) throw RetryableError(error, retry_after(response));
  throw error;
}

async::Task<json> Client::call(ApiCall call) {
  auto retry_policy = retry_policy_;
  retry_policy.max_tries = call.max_tries.value_or(retry_policy.max_tries);
  if (call.max_unanswered) retry_policy = retry_policy.for_short_wait(*call.max_unanswered);
  async::Backoff backoff(retry_policy);
  if (!call.cancel) call.cancel = stop_;
  for (;;) {
    std::chrono::milliseconds pause{0};
    try {
      const auto response = co_await send(call);
      auto answer = response.body.empty() ? json() : core::parse_json(response.body);
      if (answer.is_discarded())
        throw core::EnvironmentError(
            "cannot " + call.what + ": the server at " + access_.server +
            " is not a Kubernetes API server: " + response.body.substr(0, 200));
      co_return answer;
    } catch (const RetryableError& error) {
      if (backoff.exhausted()) throw;
      pause = backoff.next(error.after());
      core::log::info(std::string("kubernetes: ") + error.what() + "; once more in " +
                      std::to_string(pause.count()) + " ms");
    } catch (const net::TransportError& error) {
      const bool stopped = call.cancel && call.cancel->level() != core::StopLevel::none;
      if (stopped) throw;
      if (error.is_unanswered()) backoff.count_unanswered();
      if (net::is_about_trust(error) || backoff.exhausted())
        throw core::EnvironmentError(
            "cannot reach the cluster of " + access_.origin + ": " + error.what(),
            {net::is_about_trust(error)
                 ? "the kubeconfig's certificate-authority is not the one "
                   "that the server's certificate is from: get a new kubeconfig"
                 : "`kubectl get --raw /readyz` says whether it is up; a "
                   "VPN or a proxy (`proxy-url`) may be missing"});
      pause = backoff.next();
      core::log::info(std::string("kubernetes: ") + error.what() + "; once more in " +
                      std::to_string(pause.count()) + " ms");
    }
    co_await async::sleep(pause, call.cancel);
    // The function that stopped the call may have destroyed this client, so no member is used.
    if (call.cancel && call.cancel->level() != core::StopLevel::none)
      throw core::EnvironmentError("cannot " + call.what + ": it was stopped");
  }
}

async::Task<json> Client::get(std::string what, std::string path) {
  ApiCall request(std::move(what), "GET", std::move(path));
  co_return co_await call(std::move(request));
}

async::Task<json> Client::create(std::string what, std::string path, json object) {
  ApiCall request(std::move(what), "POST", std::move(path));
  request.body = std::move(object);
  co_return co_await call(std::move(request));
}

async::Task<json> Client::patch(std::string what, std::string path, json change) {
  ApiCall request(std::move(what), "PATCH", std::move(path));
  request.body = std::move(change);
  request.body_type = "application/merge-patch+json";
  co_return co_await call(std::move(request));
}

async::Task<> Client::remove(std::string what, std::string path, std::string uid,
                             std::optional<unsigned> grace_seconds) {
  ApiCall request(std::move(what), "DELETE", std::move(path));
  request.body =
      json{{"kind", "DeleteOptions"}, {"apiVersion", "v1"}, {"propagationPolicy", "Background"}};
  if (!uid.empty()) request.body["preconditions"]["uid"] = uid;
  if (grace_seconds) request.body["gracePeriodSeconds"] = *grace_seconds;
  try {
    co_await call(std::move(request));
  } catch (const ApiError& error) {
    if (error.status() != 404 && error.status() != 409) throw;
  }
}

async::Task<std::pair<int, int>> Client::version() {
  if (!version_) {
    ApiCall question("ask the cluster of " + access_.origin + " for its version", "GET",
                     "/version");
    question.max_unanswered = 3;  // Few: nothing shows yet that the address is right.
    question.timeout = std::chrono::seconds(15);
    const auto answer = co_await call(std::move(question));
    std::pair<int, int> found{
        std::atoi(text_at(answer, "/major").c_str()),
        std::atoi(text_at(answer, "/minor").c_str())};  // `29+` is a valid minor version, too.
    if (found.first == 0)
      throw core::EnvironmentError("the server at " + access_.server +
                                   " is not a Kubernetes API server");
    constexpr std::pair oldest{1, 20};
    if (found < oldest)
      throw core::EnvironmentError("the cluster of " + access_.origin +
                                   " is too old: it is Kubernetes " +
                                   text_at(answer, "/gitVersion") + ", and 1.20 is needed");
    version_ = found;
  }
  co_return *version_;
}

}  // namespace pipeline::kubernetes_api
