#include "orchestrators/docker/engine_addresses.hpp"

#include <algorithm>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "core/error.hpp"

namespace pipeline::orchestrators::docker_engine {
namespace {

using asio::ip::address_v4;

async::Task<address_v4> resolve(std::string host, std::string url) {
  asio::ip::tcp::resolver resolver(co_await asio::this_coro::executor);
  boost::system::error_code error;
  const auto found = co_await resolver.async_resolve(
      asio::ip::tcp::v4(), host, "", asio::redirect_error(asio::use_awaitable, error));
  if (error || found.empty())
    throw core::EnvironmentError(
        "the nodes of a step on several engines reach the machine of " + url + " at '" + host +
            "', which has no IPv4 address here: " + (error ? error.message() : "none was found"),
        {"name one in the profile, as in `engines: [unix, {host: " + url +
         ", address: 10.0.0.2}]`; a name that only ~/.ssh/config knows is not an address"});
  co_return found.begin()->endpoint().address().to_v4();
}

/// Returns this machine's address in packets to `far`. Connecting a UDP socket sends nothing.
address_v4 address_towards(const asio::any_io_executor& executor, const address_v4& far) {
  asio::ip::udp::socket socket(executor);
  socket.open(asio::ip::udp::v4());
  constexpr unsigned short discard_port = 9;  // Any port would do.
  socket.connect(asio::ip::udp::endpoint(far, discard_port));
  return socket.local_endpoint().address().to_v4();
}

}  // namespace

async::Task<std::vector<std::string>> addresses_of(const std::vector<docker::RunEngine>& engines) {
  // Stands for this machine's address, which is found out last.
  constexpr unsigned own_placeholder = 0;
  std::vector<address_v4> found;
  for (const auto& [endpoint, address] : engines) {
    const auto host = address.empty() ? docker::host_of_endpoint(endpoint.url) : address;
    found.emplace_back(own_placeholder);
    if (host.empty()) continue;
    const auto resolved = co_await resolve(host, endpoint.url);
    if (!address.empty() || !resolved.is_loopback()) found.back() = resolved;
  }
  const auto far = std::ranges::find_if(found, [](const address_v4& each) {
    return each.to_uint() != own_placeholder && !each.is_loopback();
  });
  auto own = address_v4::loopback();
  if (far != found.end()) {
    const auto executor = co_await asio::this_coro::executor;
    try {
      own = address_towards(executor, *far);
    } catch (const boost::system::system_error& error) {
      throw core::EnvironmentError(
          "this machine has no route to " + far->to_string() + ", at " +
              "which the nodes of a step reach another engine: " + error.code().message(),
          {"check this machine's network, and the engines' `address`"});
    }
  }
  std::vector<std::string> addresses;
  for (const auto& each : found)
    addresses.push_back((each.to_uint() == own_placeholder ? own : each).to_string());
  co_return addresses;
}

std::size_t engine_of_node(unsigned node, unsigned nodes, std::size_t engines) {
  const auto used = std::min<std::size_t>(nodes, engines);
  return node * used / nodes;
}

}  // namespace pipeline::orchestrators::docker_engine
