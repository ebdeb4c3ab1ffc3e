#include "orchestrators/nodes.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <random>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/joined.hpp"
#include "settings/accelerator.hpp"

namespace pipeline::orchestrators {
namespace {

using Clock = std::chrono::steady_clock;

/// Ports below 10,000 are left to services, most of which listen there.
constexpr unsigned first_port = 10'000, end_of_ports = 65'536;
/// Time in which a port that free_ports() has returned is not returned again.
constexpr std::chrono::minutes kept_for{1};

/// The ports that free_ports() has returned, and when. Used on the loop's thread only.
std::map<unsigned, Clock::time_point>& given_ports() {
  static std::map<unsigned, Clock::time_point> given;
  return given;
}

/// Returns the first port that the kernel gives to outgoing connections.
unsigned first_of_connections() {
  unsigned first = 32'768;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first;
  return first;
}

bool is_free(unsigned port) {
  const core::Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  // Without SO_REUSEADDR, connections that have just ended would occupy the port.
  const int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  return socket &&
         ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
         ::listen(socket.get(), 1) == 0;
}

bool are_free(unsigned first, unsigned count) {
  const auto& given = given_ports();
  const auto next = given.lower_bound(first);
  if (next != given.end() && next->first < first + count) return false;
  for (unsigned port = first; port < first + count; ++port)
    if (!is_free(port)) return false;
  return true;
}

constexpr const char *rank_mark = "{rank}", *local_rank_mark = "{local_rank}",
                     *restart_mark = "{restart}";
/// Time in which the agent of node 0 must answer those of the other nodes.
constexpr unsigned agent_wait_seconds = 300;
/// Time in which an agent must get the addresses of all nodes. A driver that is alive releases the
/// nodes long before, unless new machines are being started; this limit is for nodes that a dead
/// driver has left.
constexpr unsigned wait_for_addresses_seconds = 3600;

/// Returns the value of TensorFlow's TF_CONFIG.
/// @param rank the process's rank, or `rank_mark`
std::string tensorflow_config(const NodeProcess& process, const std::string& rank) {
  auto workers = nlohmann::json::array();
  for (unsigned each = 0; each < process.ranks; ++each)
    workers.push_back(process.addresses->nodes.at(each / process.local_ranks) + ":" +
                      std::to_string(process.addresses->port + each));
  const nlohmann::json cluster{{"worker", std::move(workers)}};
  return R"({"cluster":)" + cluster.dump() + R"(,"task":{"index":)" + rank +
         R"(,"type":"worker"}})";
}

/// Adds the options of `torchrun`, for a step that has one process a node, whose command may be
/// `torchrun`, which then starts further processes.
void add_torchrun(const NodeProcess& process, const std::string& id, StringMap& variables) {
  variables["PET_NNODES"] = std::to_string(process.nodes);
  variables["PET_NPROC_PER_NODE"] = std::to_string(std::max<std::size_t>(1, process.gpus_of_node));
  variables["PET_NODE_RANK"] = node_text(process);
  variables["PET_MASTER_ADDR"] = process.addresses->nodes.front();
  variables["PET_MASTER_PORT"] = std::to_string(process.addresses->port);
  variables["PET_RDZV_ID"] = id;
}

/// Returns a word that no process of another attempt has.
std::string rendezvous_id(const AttemptSpec& attempt) {
  return attempt.run_id + "-" + attempt.step.name + "-" + std::to_string(attempt.number);
}

/// Returns the number of GPUs that a process alone sees; 0: it sees those of its node.
std::size_t own_gpus(const AttemptSpec& attempt) {
  const auto& process = *attempt.process;
  return attempt.step.nodes.visible == VisibleGpus::own ? process.gpus_of_node / process.local_ranks
                                                        : 0;
}

}  // namespace

std::string node_text(const NodeProcess& process) {
  return process.addresses->nodes_share_description ? node_mark : std::to_string(process.node);
}

StringMap node_variables(const AttemptSpec& attempt) {
  const auto& process = *attempt.process;
  const auto& main = process.addresses->nodes.front();
  const auto port = std::to_string(process.addresses->port);
  const auto node = node_text(process), nodes = std::to_string(process.nodes);
  const bool has_agent = process.addresses->has_agents;
  const auto rank = has_agent ? rank_mark : std::to_string(process.rank);
  const auto local_rank = has_agent ? local_rank_mark : std::to_string(process.local_rank);
  const auto ranks = std::to_string(process.ranks);
  const auto restarts = process.addresses->restarts;
  const auto id = rendezvous_id(attempt) + (has_agent      ? restart_mark
                                            : restarts > 0 ? "-" + std::to_string(restarts)
                                                           : "");
  StringMap variables{{"MASTER_ADDR", main},
                      {"MASTER_PORT", port},
                      {"RANK", rank},
                      {"WORLD_SIZE", ranks},
                      {"LOCAL_RANK", local_rank},
                      {"LOCAL_WORLD_SIZE", std::to_string(process.local_ranks)},
                      {"NODE_RANK", node},
                      {"NNODES", nodes},
                      {"GROUP_RANK", node},
                      {"JAX_COORDINATOR_ADDRESS", main + ":" + port},
                      {"JAX_NUM_PROCESSES", ranks},
                      {"JAX_PROCESS_ID", rank},
                      {"TF_CONFIG", tensorflow_config(process, rank)},
                      {"PIPE_NODE_RANK", node},
                      {"PIPE_NODE_COUNT", nodes},
                      {"PIPE_NODE_ADDRESSES", core::joined(process.addresses->nodes, ",")},
                      {"PIPE_RENDEZVOUS_ID", id}};
  if (const auto own = process.addresses->nccl_port; own > 0)
    variables["NCCL_RAS_ADDR"] = "localhost:" + std::to_string(own);
  if (process.local_ranks == 1) add_torchrun(process, id, variables);
  if (has_agent && own_gpus(attempt) > 0) variables["CUDA_VISIBLE_DEVICES"] = gpus_mark;
  return variables;
}

std::vector<std::string> agent_words(const AttemptSpec& attempt, const std::string& agent) {
  const auto& process = *attempt.process;
  std::string names;
  const auto& docker = attempt.step.settings->docker;
  for (const auto& [name, value] : node_variables(attempt))
    if (value.find('{') != value.npos && !attempt.environment.contains(name) &&
        !docker.runtime_environment.contains(name) && !attempt.secrets.contains(name))
      names += (names.empty() ? "" : ",") + name;
  const auto addresses = core::joined(process.addresses->nodes, ",");
  const bool are_told_later = addresses.starts_with('{');
  std::vector<std::string> words{agent,
                                 "ranks",
                                 "--node",
                                 node_text(process),
                                 std::to_string(process.nodes),
                                 "--processes",
                                 std::to_string(process.local_ranks),
                                 "--addresses",
                                 are_told_later ? "-" : addresses,
                                 "--port",
                                 std::to_string(process.addresses->port + process.ranks),
                                 "--id",
                                 rendezvous_id(attempt),
                                 "--fill",
                                 names,
                                 "--begun-within",
                                 std::to_string(agent_wait_seconds)};
  if (are_told_later) {
    words.emplace_back("--addresses-within");
    words.push_back(std::to_string(wait_for_addresses_seconds));
  }
  if (const auto gpus = own_gpus(attempt); gpus > 0) {
    words.emplace_back("--own-gpus");
    words.push_back(std::to_string(gpus));
  }
  if (const auto restarts = attempt.step.nodes.restarts; restarts > 0) {
    words.emplace_back("--restarts");
    words.push_back(std::to_string(restarts));
  }
  if (attempt.step.nodes.done == NodesDone::first) words.emplace_back("--first");
  return words;
}

std::chrono::milliseconds pause_of(std::chrono::milliseconds max_pause, std::minstd_rand& random) {
  constexpr int parts = 30;
  std::uniform_int_distribution<std::int64_t> between(max_pause.count() / parts, max_pause.count());
  return std::chrono::milliseconds(between(random));
}

unsigned processes_of(const NodesSpec& nodes, std::size_t gpus_of_node) {
  if (nodes.processes != per_gpu) return nodes.processes;
  return std::max(1U, static_cast<unsigned>(gpus_of_node));
}

std::string nodes_text(const StepSpec& step) {
  const auto counted = [](std::size_t count, const std::string& one, const char* several = "s") {
    return std::to_string(count) + " " + one + (count == 1 ? "" : several);
  };
  const auto gpus = settings::gpu_request(step.settings->resources);
  const std::size_t nodes = step.nodes.count;
  // The number of GPUs that `all` stands for is known only when they are reserved.
  if (step.nodes.processes == per_gpu && gpus.count == 0)
    return counted(nodes, "node") + " with a process for each GPU";
  const std::size_t processes = processes_of(step.nodes, gpus.count);
  auto text = counted(nodes, "node") + " with " + counted(processes, "process", "es") +
              " each: " + counted(nodes * processes, "process", "es");
  if (gpus.count > 0) text += " and " + counted(nodes * gpus.count, "GPU");
  return text + " in all";
}

unsigned free_ports(unsigned count) {
  auto& given = given_ports();
  std::erase_if(given, [](const auto& port) { return Clock::now() - port.second > kept_for; });
  static std::minstd_rand random{std::random_device{}()};
  const auto end = std::max(first_of_connections(), first_port + 1);
  constexpr int max_tries = 1000;
  for (int tries = 0; tries < max_tries && count < end_of_ports - first_port; ++tries) {
    // The second half of the tries also looks among and above the ports of connections, for
    // a machine that has none free below them.
    const bool is_above = end - first_port <= count || tries >= max_tries / 2;
    const auto last = (is_above ? end_of_ports : end) - count;
    const auto first = std::uniform_int_distribution<unsigned>(first_port, last)(random);
    if (!are_free(first, count)) continue;
    for (unsigned port = first; port < first + count; ++port) given[port] = Clock::now();
    return first;
  }
  throw core::EnvironmentError("this machine has no " + std::to_string(count) +
                                   " consecutive free ports, which the step's processes need to "
                                   "reach one another",
                               {"let the step have fewer `processes`, or run fewer steps at once"});
}

/// The default of the port: processes of this machine.
async::Task<NodeAddresses> AttemptRunner::connect_nodes(const Attempt& /*attempt*/, unsigned nodes,
                                                        unsigned ranks) {
  NodeAddresses addresses;
  addresses.nodes.assign(nodes, "127.0.0.1");
  // Behind the ranks' ports follow one for agents, one for barrier() and one for NCCL.
  addresses.port = free_ports(ranks + 3);
  addresses.nccl_port = addresses.port + ranks + 2;
  co_return addresses;
}

}  // namespace pipeline::orchestrators
