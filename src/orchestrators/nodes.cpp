#include "orchestrators/nodes.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <charconv>
#include <chrono>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

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

/// Returns the rank in a line such as `7 python3 train.py (rank 3): ...` of a node with several
/// ranks; nothing if the line does not name its rank.
std::optional<unsigned> rank_in_wait(const std::string& line) {
  constexpr std::string_view before = " (rank ", after = "): ";
  const auto end = line.rfind(after), begin = line.rfind(before, end);
  if (end == line.npos || begin == line.npos) return std::nullopt;
  unsigned rank = 0;
  const auto read = std::from_chars(line.data() + begin + before.size(), line.data() + end, rank);
  if (read.ec != std::errc() || read.ptr != line.data() + end) return std::nullopt;
  return rank;
}

/// Returns the waits of each rank, from the ranks that the lines of each node name. Lines with
/// a rank of another node are left out, because torchrun numbers the processes that it starts
/// itself. If a node has no lines, all of its ranks work. If the lines of a node name no rank,
/// because the agent may not read the variables of its processes, returns the waits by node.
std::map<unsigned, std::vector<std::string>> waits_of_each(const WaitsByRank& all,
                                                           unsigned ranks_of_node) {
  std::map<unsigned, std::vector<std::string>> by_node(all.begin(), all.end());
  if (ranks_of_node == 1) return by_node;
  std::map<unsigned, std::vector<std::string>> each;
  for (const auto& [first, lines] : all) {
    std::map<unsigned, std::vector<std::string>> own;
    for (const auto& line : lines) {
      const auto rank = rank_in_wait(line);
      if (rank && *rank >= first && *rank - first < ranks_of_node) own[*rank].push_back(line);
    }
    for (unsigned i = 0; i < ranks_of_node && lines.empty(); ++i) own[first + i] = {};
    if (own.empty()) return by_node;
    each.merge(own);
  }
  return each;
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
  return process.addresses->are_alike ? node_mark : std::to_string(process.node);
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

std::optional<RankEnd> rank_end_of(std::string_view line) {
  if (!line.starts_with('!')) return std::nullopt;
  std::istringstream words{std::string(line.substr(1))};
  RankEnd end;
  std::string how;
  std::int64_t time = 0;
  constexpr std::int64_t max_time = std::int64_t{1} << 52;  // Microseconds; a later time overflows.
  if (!(words >> end.rank >> end.code >> how >> time) || time < 0 || time > max_time)
    return std::nullopt;
  end.has_failed = how == "failed";
  const auto age =
      std::chrono::system_clock::now().time_since_epoch() - std::chrono::microseconds(time);
  end.time = Clock::now() - std::chrono::duration_cast<Clock::duration>(age);
  // An agent does not write larger numbers, but a step can imitate its lines; the store could not
  // read them back.
  constexpr std::int64_t max_cpu = std::int64_t{1} << 49, max_memory = std::int64_t{1} << 40;
  std::int64_t cpu = -1, memory = -1;
  if (words >> cpu >> memory && cpu >= 0 && cpu <= max_cpu && memory >= 0 && memory <= max_memory) {
    end.cpu = std::chrono::microseconds(cpu);
    end.peak_memory = static_cast<std::uint64_t>(memory) * 1024;
  }
  return end;
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

std::string odd_rank_text(const WaitsByRank& all, unsigned ranks_of_node) {
  std::map<std::string, std::vector<unsigned>> ranks;
  const auto each = waits_of_each(all, ranks_of_node);
  for (const auto& [rank, lines] : each) {
    std::string text;
    for (const auto& line : lines) {
      const auto wait = line.substr(std::min(line.rfind(": "), line.size()));
      if (wait.find(" stopped") != wait.npos) return "rank " + std::to_string(rank) + " is stopped";
      text += wait + "\n";
    }
    ranks[text].push_back(rank);
  }
  if (ranks.size() != 2 || each.size() < 3) return {};
  for (const auto& [text, some] : ranks)
    if (some.size() == 1)
      return "rank " + std::to_string(some.front()) + " waits for something else than the " +
             std::to_string(each.size() - 1) + " others, which are alike";
  return {};
}

std::string rank_prefix(unsigned rank) { return "[" + std::to_string(rank) + "] "; }

std::optional<std::pair<unsigned, std::string_view>> rank_of_line(std::string_view line) {
  unsigned rank = 0;
  if (!line.starts_with('[')) return std::nullopt;
  const auto [end, error] = std::from_chars(line.data() + 1, line.data() + line.size(), rank);
  const auto length = static_cast<std::size_t>(end - line.data());
  if (error != std::errc() || !line.substr(length).starts_with("] ")) return std::nullopt;
  return std::pair(rank, line.substr(length + 2));
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
