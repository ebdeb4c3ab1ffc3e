#include "docker/ssh_connection.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "async/sleep.hpp"
#include "core/error.hpp"

namespace pipeline::docker {
namespace {

constexpr std::string_view scheme = "ssh://";

/// Returns true if the text is a single word for any remote shell, and not an option.
bool is_word(std::string_view text, std::string_view punctuation) {
  return !text.empty() && text.front() != '-' && std::all_of(text.begin(), text.end(), [&](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x80 && std::isalnum(byte)) || punctuation.find(c) != punctuation.npos;
  });
}

bool is_port(std::string_view text) {
  return !text.empty() && text.size() <= 5 && text.find_first_not_of("0123456789") == text.npos &&
         std::stoul(std::string(text)) - 1 < 65535;
}

[[noreturn]] void refuse(const std::string& url, const std::string& why) {
  throw core::EnvironmentError(
      "cannot use the endpoint " + url + ": " + why,
      {"as in DOCKER_HOST=ssh://me@host or ssh://me@host:2222/run/docker.sock"});
}

std::string content_of(const core::Descriptor& file) {
  std::string text(4096, '\0');
  const auto size = pread(file.get(), text.data(), text.size(), 0);
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  return text;
}

/// Returns the abstract name of one end of a socket. @param tell getsockname or getpeername
std::string name_of(int socket, int (*tell)(int, sockaddr*, socklen_t*) noexcept) {
  sockaddr_un name{};
  socklen_t size = sizeof name;
  if (tell(socket, reinterpret_cast<sockaddr*>(&name), &size) != 0)
    throw core::system_error("cannot name a socket for ssh", errno);
  return {name.sun_path, size - offsetof(sockaddr_un, sun_path)};
}

}  // namespace

SshTarget parse_ssh_url(const std::string& url) {
  auto rest = std::string_view(url).substr(scheme.size());
  SshTarget target;
  if (const auto slash = rest.find('/'); slash != rest.npos) {
    target.socket = rest.substr(slash);
    if (target.socket == "/") target.socket.clear();
    rest = rest.substr(0, slash);
  }
  if (const auto at = rest.rfind('@'); at != rest.npos) {
    target.user = rest.substr(0, at);
    rest = rest.substr(at + 1);
    if (target.user.find(':') != std::string::npos)
      refuse("ssh://...@" + std::string(rest),
             "it holds a password, which ssh does not accept: use a key");
    if (!is_word(target.user, "._-+\\"))
      refuse(url, "'" + target.user + "' cannot be a user's name");
  }
  if (!target.socket.empty() && !is_word(target.socket, "/._-+@:"))
    refuse(url, "the socket's path has characters that a shell could take apart");
  auto host = rest, port = std::string_view();
  bool has_port = false;
  if (rest.starts_with('[')) {
    const auto end = rest.find(']');
    if (end == rest.npos) refuse(url, "the `[` has no `]`");
    host = rest.substr(1, end - 1);
    if (has_port = end + 1 < rest.size(); has_port && rest[end + 1] != ':')
      refuse(url, "after `]` comes `:PORT` or nothing");
    if (has_port) port = rest.substr(end + 2);
    if (!is_word(host, ":.%")) refuse(url, "'" + std::string(host) + "' cannot be an address");
  } else {
    if (const auto colon = rest.find(':'); (has_port = colon != rest.npos)) {
      host = rest.substr(0, colon);
      port = rest.substr(colon + 1);
    }
    if (host.empty()) refuse(url, "it names no host");
    if (!is_word(host, "._-")) refuse(url, "'" + std::string(host) + "' cannot be a host's name");
  }
  if (has_port && !is_port(port))
    refuse(url, "'" + std::string(port) +
                    "' is not a port (1 to 65535); an IPv6 address goes in brackets");
  target.host = host;
  target.port = port;
  return target;
}

std::vector<std::string> ssh_command(const SshTarget& target) {
  std::vector<std::string> command{"ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=20"};
  for (const auto& [option, value] : {std::pair("-l", &target.user), std::pair("-p", &target.port)})
    if (!value->empty()) command.insert(command.end(), {option, *value});
  command.insert(command.end(), {"--", target.host, "docker"});
  if (!target.socket.empty()) command.insert(command.end(), {"--host", "unix://" + target.socket});
  command.insert(command.end(), {"system", "dial-stdio"});
  return command;
}

bool is_crowded(std::string_view failure) {
  return failure.find("kex_exchange_identification") != failure.npos ||
         failure.find("ssh_exchange_identification") != failure.npos;
}

SshConnections::SshConnections(const SshTarget& target)
    : command_(ssh_command(target)),
      listener_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  // The socket has a file, because libcurl 7.88 does not reuse a connection to an abstract name.
  // The path names an open descriptor: it is short, and no file remains.
  const core::TemporaryFolder folder;
  const core::Descriptor within(open(folder.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const auto file = "/proc/self/fd/" + std::to_string(within.get()) + "/ssh";
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  file.copy(name.sun_path, sizeof name.sun_path - 1);
  if (!listener_ || !within ||
      bind(listener_.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0 ||
      listen(listener_.get(), SOMAXCONN) != 0)
    throw core::system_error("cannot make a socket for ssh", errno);
  entry_ = core::Descriptor(open(file.c_str(), O_PATH | O_CLOEXEC));
  if (!entry_) throw core::system_error("cannot open the socket for ssh", errno);
  path_ = "/proc/self/fd/" + std::to_string(entry_.get());
}

SshConnections::~SshConnections() {
  if (listening_) listening_->release();
  for (auto& process : processes_) process.child.signal(SIGTERM);
  for (auto& process : processes_) process.child.wait();
}

SshConnections::Connection SshConnections::offer(const asio::any_io_executor& executor) {
  forget_ended();
  core::Descriptor offered(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // The kernel chooses an abstract name, by which accept() recognises the connection.
  const sa_family_t family = AF_UNIX;
  if (!offered ||
      bind(offered.get(), reinterpret_cast<const sockaddr*>(&family), sizeof family) != 0)
    throw core::system_error("cannot make a socket for ssh", errno);
  offered_[name_of(offered.get(), getsockname)] = ++opened_;
  if (!listening_) listening_.emplace(executor, listener_.get());
  wait_for_caller();
  return {std::move(offered), opened_};
}

/// Waits on the event loop until a caller of offer() connects, and starts its process; ends when no
/// offer is left.
void SshConnections::wait_for_caller() {
  if (is_waiting_ || offered_.empty()) return;
  is_waiting_ = true;
  const auto readable = asio::posix::stream_descriptor::wait_read;
  listening_->async_wait(
      readable, [this, alive = std::weak_ptr(alive_)](const boost::system::error_code& failed) {
        if (alive.expired()) return;
        is_waiting_ = false;
        if (failed) return;
        while (accept()) continue;
        wait_for_caller();
      });
}

/// Returns false if no connection is left to accept.
bool SshConnections::accept() {
  const core::Descriptor accepted(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!accepted && errno != EAGAIN && errno != ECONNABORTED) {
    const auto error = std::make_exception_ptr(core::system_error("cannot accept for ssh", errno));
    for (const auto& [name, number] : std::exchange(offered_, {})) refused_[number] = error;
  }
  if (!accepted) return false;
  const auto offer = offered_.extract(name_of(accepted.get(), getpeername));
  if (!offer) return true;
  try {
    start_ssh(listening_->get_executor(), accepted, offer.mapped());
  } catch (...) {
    refused_[offer.mapped()] = std::current_exception();
  }
  return true;
}

void SshConnections::start_ssh(const asio::any_io_executor& executor,
                               const core::Descriptor& accepted, int number) {
  core::Descriptor errors(memfd_create("ssh-errors", MFD_CLOEXEC));
  if (!errors) throw core::system_error("cannot store the output of ssh", errno);
  net::ChildCall call{command_, {}, accepted.get(), accepted.get(), errors.get()};
  // A Ctrl-C must not end ssh: the engine is still needed for the clean-up.
  call.own_session = true;
  try {
    processes_.push_back({net::Child(executor, call), std::move(errors), number});
  } catch (const net::NotOnPath&) {
    throw core::EnvironmentError("cannot reach the engine: there is no `ssh` on the PATH",
                                 {"install it with `sudo apt-get install openssh-client`"});
  } catch (const core::EnvironmentError& error) {
    throw core::EnvironmentError(std::string("cannot run ssh: ") + error.what());
  }
}

/// Drops processes that have succeeded; and, once a thousand further connections were opened,
/// failed processes that failure_of() was not called for, and offers whose caller did not connect.
void SshConnections::forget_ended() {
  constexpr int long_ago = 1000;
  std::erase_if(processes_, [&](Process& process) {
    if (process.child.is_running()) return false;
    return process.child.exit_code() == 0 || opened_ - process.number >= long_ago;
  });
  std::erase_if(refused_, [&](const auto& refused) { return opened_ - refused.first >= long_ago; });
  std::erase_if(offered_, [&](const auto& offer) { return opened_ - offer.second >= long_ago; });
}

async::Task<std::string> SshConnections::failure_of(int number) {
  if (const auto refused = refused_.extract(number)) std::rethrow_exception(refused.mapped());
  for (int looks = 0; looks < 100; ++looks) {
    const auto process = std::find_if(processes_.begin(), processes_.end(),
                                      [&](const Process& each) { return each.number == number; });
    if (process == processes_.end()) break;
    if (!process->child.is_running()) {
      auto text = content_of(process->errors);
      const int code = process->child.exit_code();
      processes_.erase(process);
      if (code == 0) break;
      if (text.empty()) text = "ssh ended with status " + std::to_string(code);
      co_return text;
    }
    co_await async::sleep(std::chrono::milliseconds(10));
  }
  co_return std::string();
}

}  // namespace pipeline::docker
