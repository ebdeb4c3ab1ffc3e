#include "notify/webhook.hpp"

#include <cstdlib>

#include "async/deadline.hpp"
#include "async/sleep.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"

namespace pipeline::notify {
namespace {

/// Maximum size of an answer in bytes. The usual answer is `ok`; its text is not read.
constexpr std::size_t max_answer = std::size_t{64} << 10;

bool is_accepted(long status) { return status >= 200 && status < 300; }
bool is_retryable(long status) { return status == 429 || status >= 500; }

}  // namespace

std::string address_of(const NotifySpec& notify) {
  if (!notify.url.empty()) return notify.url;
  std::string address;
  std::string source;
  if (!notify.url_variable.empty()) {
    const char* value = std::getenv(notify.url_variable.c_str());
    address = value ? value : "";
    source = "the variable " + notify.url_variable;
  } else {
    address = core::read_file(notify.url_file);
    source = "the file " + notify.url_file;
  }
  while (address.ends_with('\n') || address.ends_with('\r')) address.pop_back();
  if (!address.starts_with("https://") && !address.starts_with("http://"))
    throw core::EnvironmentError(source + " has no address of a webhook, `https://...`");
  return address;
}

std::string shown_address(const std::string& address) {
  const auto begin = address.find("://");
  if (begin == std::string::npos) return "the webhook";
  const auto end = std::min(address.find_first_of("/?#", begin + 3), address.size());
  const auto user = address.rfind('@', end);
  const auto host = user == std::string::npos || user < begin + 3 ? begin + 3 : user + 1;
  return address.substr(0, begin + 3) + address.substr(host, end - host) + "/...";
}

async::Task<std::string> deliver(net::HttpClient& http, std::string address, std::string body,
                                 core::CancelSource& stop, DeliveryLimits limits) {
  async::Deadline deadline(co_await asio::this_coro::executor, stop, Duration(limits.total),
                           core::StopLevel::immediate);
  const auto is_over = [&] { return deadline.source().level() != core::StopLevel::none; };
  async::Backoff backoff(limits.retries);
  std::string reason;
  for (;;) {
    bool again = true;
    long status = 0;
    std::size_t length = 0;
    const auto on_headers = [&](const net::Response& head) { status = head.status; };
    const auto on_body = [&](std::string_view part) {
      if ((length += part.size()) > max_answer)
        throw core::EnvironmentError("the answer is too long");
    };
    try {
      net::Request request;
      request.method = "POST";
      request.url = address;
      request.headers.push_back("Content-Type: application/json");
      request.body = body;
      request.connect_timeout = limits.request;
      request.timeout = limits.request;
      co_await http.send(std::move(request), on_body, &deadline.source(), on_headers);
      if (is_accepted(status)) co_return std::string();
      reason = "it answered with status " + std::to_string(status);
      again = is_retryable(status);
    } catch (const core::EnvironmentError& error) {
      if (is_accepted(status)) co_return std::string();  // The service has the message.
      // Messages of curl and of our client name the address.
      if (!is_over()) reason = core::replaced(error.what(), address, shown_address(address));
    }
    if (is_over() && reason.empty())
      reason = deadline.expired() ? "it did not answer in time" : "it did not answer until Ctrl-C";
    if (!again || is_over() || backoff.exhausted()) co_return reason;
    co_await async::sleep(backoff.next(), &deadline.source());
    if (is_over()) co_return reason;
  }
}

}  // namespace pipeline::notify
