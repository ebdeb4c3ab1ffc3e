#include "orchestrators/slurm/login_node.hpp"

#include <fcntl.h>
#include <signal.h>

#include "async/sleep.hpp"
#include "core/diagnostic.hpp"
#include "core/identifier.hpp"
#include "core/joined.hpp"

namespace pipeline::orchestrators::slurm {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto pause_between_tries = 60s, time_to_connect = 20s;

docker::SshTarget target_of(const std::string& url) {
  constexpr const char* example = "write `host: ssh://me@login`, or `ssh://me@login:2222`";
  if (!url.starts_with("ssh://"))
    throw core::InputError("'" + url + "' is not the address of a Slurm cluster's login node",
                           example);
  docker::SshTarget target;
  try {
    target = docker::parse_ssh_url(url);
  } catch (const core::EnvironmentError& error) {
    throw core::InputError(error.what(), example);
  }
  if (!target.socket.empty())
    throw core::InputError("the address of a Slurm cluster's login node has no path: '" + url + "'",
                           example);
  return target;
}

}  // namespace

LoginNode::LoginNode(const std::string& url) : url_(url) {
  if (is_remote()) target_ = target_of(url);
}

LoginNode::~LoginNode() {
  if (!connection_) return;
  connection_->signal(SIGTERM);
  connection_->wait();
}

std::vector<std::string> LoginNode::ssh(const std::vector<std::string>& options) const {
  // ssh asks nothing, so that it cannot hang; it checks the host's key as the user's own ssh does.
  std::vector<std::string> words{"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=20"};
  if (folder_)
    words.insert(words.end(), {"-o", "ControlPath=" + (folder_->path() / "connection").string()});
  words.insert(words.end(), options.begin(), options.end());
  if (!target_.user.empty()) words.insert(words.end(), {"-l", target_.user});
  if (!target_.port.empty()) words.insert(words.end(), {"-p", target_.port});
  words.insert(words.end(), {"--", target_.host});
  return words;
}

std::vector<std::string> LoginNode::words(const std::vector<std::string>& command,
                                          bool has_terminal) const {
  if (!is_remote()) return command;
  auto words = ssh({"-o", "ControlMaster=no", has_terminal ? "-t" : "-T"});
  words.push_back(core::joined(command, " ", core::shell_quote));
  return words;
}

async::Task<> LoginNode::connect() {
  if (!is_remote() || (connection_ && connection_->is_running())) co_return;
  if (tried_ != Clock::time_point{} && Clock::now() - tried_ < pause_between_tries) co_return;
  tried_ = Clock::now();
  folder_.emplace("/tmp");  // TMPDIR may be too long for a socket, or have blanks, for ssh.
  const core::Descriptor nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!nothing) co_return;
  const auto executor = co_await asio::this_coro::executor;
  net::ChildCall call{ssh({"-M", "-N", "-T"}), {}, nothing.get(), nothing.get(), nothing.get()};
  call.own_session = true;  // Ctrl-C must not end ssh: jobs are still to be cancelled.
  try {
    connection_.emplace(executor, call);
  } catch (const core::EnvironmentError&) {  // The command that follows fails with the reason.
    co_return;
  }
  const auto socket = folder_->path() / "connection";
  while (connection_->is_running() && !std::filesystem::exists(socket) &&
         Clock::now() - tried_ < time_to_connect)
    co_await async::sleep(20ms);
}

}  // namespace pipeline::orchestrators::slurm
