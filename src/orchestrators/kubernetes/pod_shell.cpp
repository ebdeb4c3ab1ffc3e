#include "orchestrators/kubernetes/pod_shell.hpp"

#include <unistd.h>

#include <charconv>
#include <chrono>

#include "agent/shell.hpp"
#include "async/timeout.hpp"
#include "core/bounded_json.hpp"
#include "core/file.hpp"
#include "core/log.hpp"
#include "kubernetes_api/channels.hpp"
#include "kubernetes_api/json.hpp"
#include "net/url.hpp"
#include "orchestrators/kubernetes/job_informer.hpp"
#include "orchestrators/kubernetes/manifest.hpp"
#include "orchestrators/shell_terminal.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using kubernetes_api::Channel;
using kubernetes_api::Channels;
using kubernetes_api::list_at;
using kubernetes_api::text_at;
using nlohmann::json;

constexpr std::chrono::seconds answer_timeout{10};
constexpr std::size_t max_output = 64 << 10;  ///< Bytes of an answer; the rest is dropped.

/// Returns the last `count` bytes of a number, the most significant byte first.
std::string big_endian(std::uint32_t number, int count) {
  std::string bytes;
  for (int shift = 8 * (count - 1); shift >= 0; shift -= 8)
    bytes += static_cast<char>(number >> shift);
  return bytes;
}

/// Returns a frame of the agent's input (agent/shell.hpp).
std::string input_frame(const std::string& bytes) {
  return big_endian(static_cast<std::uint32_t>(bytes.size()), 4) + bytes;
}

/// Returns the frame with the terminal's size; 24 by 80 for a terminal that does not know its size.
std::string size_frame(unsigned rows, unsigned columns) {
  const bool is_known = rows > 0 && columns > 0;
  return big_endian(agent::shell_size, 4) + big_endian(is_known ? rows : 24, 2) +
         big_endian(is_known ? columns : 80, 2);
}

/// Writes the output of the container to this process's streams until it ends.
/// @param status receives the status that the server sends at the end of a command
async::Task<> pass_output(Channels& channels, std::string& status) {
  co_await channels.send(Channel::input, big_endian(agent::shell_begins, 4));
  for (;;) {
    const auto message = co_await channels.receive();
    if (!message) co_return;
    const auto& [channel, bytes] = *message;
    if (channel == Channel::output) core::write_all(STDOUT_FILENO, bytes);
    if (channel == Channel::errors) core::write_all(STDERR_FILENO, bytes);
    if (channel == Channel::status) status += bytes;
  }
}

/// Tells the agent that the input has ended. A terminal's input does not end: the user ends the
/// shell there.
async::Task<> end_input(Channels& channels, bool has_terminal) {
  if (!has_terminal) co_await channels.send(Channel::input, big_endian(agent::shell_input_ends, 4));
}

/// Connects this process's streams with an agent that runs a shell (agent/shell.hpp). Returns the
/// status that the server sends at the end.
async::Task<std::string> connect_shell(Channels& channels, bool has_terminal) {
  std::string status;
  RemoteShell shell;
  shell.send = [&channels](std::string bytes) {
    return channels.send(Channel::input, input_frame(bytes));
  };
  shell.end_input = [&channels, has_terminal] { return end_input(channels, has_terminal); };
  shell.resize = [&channels](unsigned rows, unsigned columns) {
    return channels.send(Channel::input, size_frame(rows, columns));
  };
  shell.pass_output = [&channels, &status] { return pass_output(channels, status); };
  co_await connect_terminal(std::move(shell), has_terminal);
  co_return status;
}

/// Returns the pod in which the process runs; null if there is none.
async::Task<json> pod_of(kubernetes_api::Client& client, const std::string& owner,
                         const RunningProcess& process) {
  const auto selector =
      label_selector(attempt_labels(process.run_id, process.step, process.number, owner));
  const auto pods =
      co_await client.get("list the pods of an attempt",
                          client.path("", "pods") + "?labelSelector=" + net::url_encode(selector));
  for (const auto& pod : list_at(pods, "/items")) {
    const auto node = text_at(pod, "/metadata/labels/" + std::string(node_label));
    const bool is_of_node =
        node.empty() ? index_of(pod) == process.node : node == std::to_string(process.node);
    if ((!process.rank || is_of_node) && text_at(pod, "/status/phase") == "Running" &&
        text_at(pod, "/metadata/deletionTimestamp").empty())
      co_return pod;
  }
  co_return json();
}

/// Returns the path of the agent in the step's container; empty for a null pod. A service mesh may
/// have put its own container first.
std::string agent_path_in(const json& pod) {
  return text_at(kubernetes_api::named_at(pod, "/spec/containers", step_container), "/command/0");
}

/// Returns the command by which the agent of a pod runs the words beside the process.
std::vector<std::string> words_beside(const std::string& agent, const RunningProcess& process,
                                      const std::vector<std::string>& words) {
  std::vector<std::string> beside{agent, "join"};
  if (process.rank) {
    beside.push_back(std::to_string(*process.rank));
  } else {
    beside.push_back("PIPE_RUN_ID=" + process.run_id);
    beside.emplace_back("--");
  }
  beside.insert(beside.end(), words.begin(), words.end());
  return beside;
}

/// Runs a command in the step's container.
async::Task<std::unique_ptr<Channels>> execute(kubernetes_api::Client& client,
                                               const std::string& pod,
                                               const std::vector<std::string>& words,
                                               bool has_input) {
  auto path = client.path("", "pods", pod) + "/exec?container=" + step_container +
              "&stdout=true&stderr=true" + (has_input ? "&stdin=true" : "");
  for (const auto& word : words) path += "&command=" + net::url_encode(word);
  return kubernetes_api::open_channels(client, "run a command in the pod " + pod, std::move(path));
}

async::Task<std::string> read_answer(Channels& channels, std::string& status) {
  std::string output;
  while (const auto message = co_await channels.receive()) {
    const auto& [channel, bytes] = *message;
    if (channel == Channel::output && output.size() < max_output) output += bytes;
    if (channel == Channel::status) status += bytes;
  }
  co_return output;
}

}  // namespace

std::optional<int> code_in_status(std::string_view status) {
  const auto read = core::parse_json(status);
  if (text_at(read, "/status") == "Success") return 0;
  for (const auto& cause : list_at(read, "/details/causes")) {
    if (text_at(cause, "/reason") != "ExitCode") continue;
    const auto text = text_at(cause, "/message");
    int code = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), code).ec == std::errc())
      return code;
  }
  return std::nullopt;
}

async::Task<> connect_pod(kubernetes_api::Client& client, std::string pod, bool has_terminal) {
  const auto path = client.path("", "pods", pod) + "/attach?container=" + step_container +
                    "&stdin=true&stdout=true&stderr=true";
  const auto channels =
      co_await kubernetes_api::open_channels(client, "attach to the pod " + pod, path);
  co_await connect_shell(*channels, has_terminal);
}

async::Task<std::optional<int>> join_pod(kubernetes_api::Client& client, std::string owner,
                                         RunningProcess process, ShellRequest shell) {
  const auto pod = co_await pod_of(client, owner, process);
  const auto agent = agent_path_in(pod);
  if (agent.empty()) co_return std::nullopt;
  auto words = words_beside(agent, process, shell.words);
  const char* const streams = shell.has_terminal ? "--terminal" : "--pipes";
  for (const char* word : {streams, "shell", agent.c_str()}) words.insert(words.begin(), word);
  const auto channels = co_await execute(client, text_at(pod, "/metadata/name"), words, true);
  const auto status = co_await connect_shell(*channels, shell.has_terminal);
  co_return code_in_status(status);
}

async::Task<std::optional<std::string>> ask_pod(kubernetes_api::Client& client, std::string owner,
                                                RunningProcess process,
                                                std::vector<std::string> words) {
  const auto pod = co_await pod_of(client, owner, process);
  const auto agent = agent_path_in(pod);
  if (agent.empty()) co_return std::nullopt;
  const auto beside = words_beside(agent, process, words);
  const auto channels = co_await execute(client, text_at(pod, "/metadata/name"), beside, false);
  async::Timeout limit(client.loop().get_executor(), [&] { channels->close(); });
  limit.start(answer_timeout);
  std::string status, output;
  try {
    output = co_await read_answer(*channels, status);
  } catch (const net::TransportError& error) {
    core::log::info(error.what());
  }
  co_return code_in_status(status) == 0 ? std::optional(output) : std::nullopt;
}

}  // namespace pipeline::orchestrators::kubernetes
