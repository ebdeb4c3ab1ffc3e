#include "orchestrators/kubernetes/pod_shell.hpp"

#include <unistd.h>

#include "agent/shell.hpp"
#include "core/file.hpp"
#include "kubernetes_api/channels.hpp"
#include "orchestrators/kubernetes/manifest.hpp"
#include "orchestrators/shell_terminal.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using kubernetes_api::Channel;
using kubernetes_api::Channels;

std::string bytes_of(std::uint32_t number, int count) {
  std::string bytes;
  for (int shift = 8 * (count - 1); shift >= 0; shift -= 8)
    bytes += static_cast<char>(number >> shift);
  return bytes;
}

std::string frame_of(const std::string& bytes) {
  return bytes_of(static_cast<std::uint32_t>(bytes.size()), 4) + bytes;
}

/// Some terminals do not know their size.
std::string size_frame(unsigned rows, unsigned columns) {
  const bool is_known = rows > 0 && columns > 0;
  return bytes_of(kubernetes_api::shell_size, 4) + bytes_of(is_known ? rows : 24, 2) +
         bytes_of(is_known ? columns : 80, 2);
}

async::Task<> pass_output(Channels& channels) {
  co_await channels.send(Channel::input, bytes_of(kubernetes_api::shell_begins, 4));
  for (;;) {
    const auto message = co_await channels.receive();
    if (!message) co_return;
    const auto& [channel, bytes] = *message;
    if (channel == Channel::output) core::write_all(STDOUT_FILENO, bytes);
    if (channel == Channel::errors) core::write_all(STDERR_FILENO, bytes);
  }
}

/// A terminal's input has no end but the user's.
async::Task<> end_input(Channels& channels, bool has_terminal) {
  if (!has_terminal)
    co_await channels.send(Channel::input, bytes_of(kubernetes_api::shell_input_ends, 4));
}

}  // namespace

async::Task<> connect_pod(kubernetes_api::Client& client, std::string pod, bool has_terminal) {
  const auto path = client.path("", "pods", pod) + "/attach?container=" + step_container +
                    "&stdin=true&stdout=true&stderr=true";
  const auto channels =
      co_await kubernetes_api::open_channels(client, "attach to the pod " + pod, path);
  RemoteShell shell;
  shell.send = [&channels](std::string bytes) {
    return channels->send(Channel::input, frame_of(bytes));
  };
  shell.end_input = [&channels, has_terminal] { return end_input(*channels, has_terminal); };
  shell.resize = [&channels](unsigned rows, unsigned columns) {
    return channels->send(Channel::input, size_frame(rows, columns));
  };
  shell.pass_output = [&channels] { return pass_output(*channels); };
  co_await connect_terminal(std::move(shell), has_terminal);
}

}  // namespace pipeline::orchestrators::kubernetes
