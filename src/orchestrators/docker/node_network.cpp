#include "orchestrators/docker/node_network.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "net/url.hpp"
#include "orchestrators/docker/service_network.hpp"
#include "orchestrators/docker/service_spec.hpp"

namespace pipeline::orchestrators::docker_engine {
namespace {

using docker::EngineError;
using nlohmann::json;

std::optional<std::uint32_t> parse_address(std::string_view text) {
  in_addr address{};
  if (::inet_pton(AF_INET, std::string(text).c_str(), &address) != 1) return std::nullopt;
  return ntohl(address.s_addr);
}

std::string format_address(std::uint32_t number) {
  const in_addr address{htonl(number)};
  char text[INET_ADDRSTRLEN] = {};
  ::inet_ntop(AF_INET, &address, text, sizeof text);
  return text;
}

/// Returns the first IPv4 subnet of a network, as its IPAM configuration.
json subnet_of(const json& network) {
  for (const auto& config : network.value(json::json_pointer("/IPAM/Config"), json::array()))
    if (config.value("Subnet", std::string()).find('.') != std::string::npos) return config;
  return json::object();
}

/// Creates the network again, in the subnet that the engine chose for it the first time. An engine
/// lets containers choose their addresses only in a network whose subnet was asked for. Returns
/// false if another network has taken the subnet meanwhile.
async::Task<bool> make_again(docker::EngineApi& engine, json body, const json& subnet) {
  body["IPAM"] = {{"Config", json::array({subnet})}};
  std::string refusal;
  try {
    co_await make_network(engine, std::move(body));
  } catch (const EngineError& error) {
    refusal = error.what();
    if (!says_subnet_is_taken(refusal)) throw;
  }
  co_return refusal.empty();
}

}  // namespace

bool says_subnet_is_taken(std::string_view refusal) {
  constexpr std::array texts{"verlaps",                                 // Docker Engine.
                             "already used on the host or by another",  // Podman with Netavark.
                             "being used by a network interface",       // Podman with CNI.
                             "already being used by a cni configuration"};
  return std::ranges::any_of(texts, [&](auto* text) { return refusal.find(text) != refusal.npos; });
}

std::vector<std::string> addresses_in(std::string_view subnet, std::string_view gateway,
                                      unsigned count) {
  const auto slash = std::min(subnet.find('/'), subnet.size());
  const auto first = parse_address(subnet.substr(0, slash));
  unsigned bits = 0;
  const auto length = subnet.substr(std::min(slash + 1, subnet.size()));
  std::from_chars(length.data(), length.data() + length.size(), bits);
  constexpr unsigned min_bits = 8, max_bits = 30;  // A longer prefix leaves no usable address.
  if (!first || bits < min_bits || bits > max_bits)
    throw core::EnvironmentError("the engine's network has the subnet '" + std::string(subnet) +
                                 "', in which containers cannot have IPv4 addresses");
  // Neither the network's own address, nor the broadcast address, nor the gateway.
  const auto usable = (std::uint64_t{1} << (32 - bits)) - 3;
  if (count > usable)
    throw core::EnvironmentError(
        "the engine's network has " + std::to_string(usable) + " addresses, and the step has " +
            std::to_string(count) + " nodes",
        {"`default-address-pools` in the engine's daemon.json gives networks more"});
  std::vector<std::string> addresses;
  for (auto next = *first + 1; addresses.size() < count; ++next)
    if (auto address = format_address(next); address != gateway)
      addresses.push_back(std::move(address));
  return addresses;
}

async::Task<NodeAddresses> make_node_network(docker::EngineApi& engine, const Attempt& attempt,
                                             const ContainerOptions& options, unsigned nodes) {
  const auto body = network_body(attempt, options);
  const auto path = "/networks/" + net::url_encode(options.network);
  constexpr int max_tries = 10;
  for (int tries = 0; tries < max_tries; ++tries) {
    co_await make_network(engine, body);
    const auto network = co_await engine.call("GET", path);
    auto subnet = subnet_of(network);
    NodeAddresses made;
    made.network = options.network;
    made.port = node_port;
    std::optional<core::EnvironmentError> unusable;
    try {
      made.nodes = addresses_in(subnet.value("Subnet", std::string()),
                                subnet.value("Gateway", std::string()), nodes);
    } catch (const core::EnvironmentError& error) {
      unusable = error;
    }
    co_await engine.call("DELETE", path);
    if (unusable) throw *unusable;
    const bool is_made = co_await make_again(engine, body, subnet);
    if (is_made) co_return made;
  }
  throw core::EnvironmentError("cannot make a network for the nodes of '" + attempt.step.name +
                                   "': other networks took its addresses each time",
                               {"run it again when fewer networks are made at once"});
}

}  // namespace pipeline::orchestrators::docker_engine
