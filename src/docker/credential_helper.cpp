#include "docker/credential_helper.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <memory>

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <boost/asio/readable_pipe.hpp>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"

namespace pipeline::docker {
namespace {

constexpr std::size_t longest_answer = 1 << 20;

/// The text as a file to read from: a helper that does not read its stdin cannot break it, as it could a pipe.
Descriptor as_file(const std::string& text) {
  Descriptor file(memfd_create("credential-server", MFD_CLOEXEC));
  if (!file || write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) || lseek(file.get(), 0, SEEK_SET) != 0)
    throw system_error("cannot make the input of a credential helper", errno);
  return file;
}

/// Reads to the end, or until there is too much to be an answer.
Task<std::string> read_all(asio::readable_pipe& pipe) {
  std::string text;
  std::array<char, 4096> piece{};
  while (text.size() < longest_answer) {
    boost::system::error_code end;
    const auto count = co_await pipe.async_read_some(asio::buffer(piece), asio::redirect_error(asio::use_awaitable, end));
    if (end) break;
    text.append(piece.data(), count);
  }
  co_return text;
}

std::string first_line(const std::string& text) { return text.substr(0, std::min(text.find('\n'), std::size_t{200})); }

/// A running helper; killed and reaped at destruction if that has not happened before.
class Child {
 public:
  Child(const std::string& program, int input, int output) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    std::string name = program, get = "get";
    std::array<char*, 3> arguments{name.data(), get.data(), nullptr};
    const int error = posix_spawnp(&pid_, program.c_str(), &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error == ENOENT) throw EnvironmentError("it is not on the PATH");
    if (error != 0) throw system_error("it cannot be run", error);
  }
  ~Child() {
    if (reaped()) return;
    kill();
    reap();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  bool reaped() const { return pid_ <= 0; }
  void kill() const { ::kill(pid_, SIGKILL); }
  /// The exit code; -1 for a signal. Its output has ended, so that its own end is near.
  int reap() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {}
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  Task<> ended() const {
    Descriptor handle(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
    if (!handle) co_return;
    asio::posix::stream_descriptor waiter(co_await asio::this_coro::executor, dup(handle.get()));
    boost::system::error_code ignored;
    co_await waiter.async_wait(asio::posix::stream_descriptor::wait_read, asio::redirect_error(asio::use_awaitable, ignored));
  }

 private:
  pid_t pid_ = 0;
};

Task<HelperAnswer> run_helper(std::string program, std::string server, std::chrono::milliseconds timeout) {
  const auto executor = co_await asio::this_coro::executor;
  HelperAnswer answer;
  const auto input = as_file(server);
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw system_error("it cannot be run", errno);
  asio::readable_pipe output(executor, ends[0]);
  Descriptor theirs(ends[1]);
  Child child(program, input.get(), theirs.get());
  theirs = Descriptor();
  bool late = false;
  const auto waiting = std::make_shared<bool>(true);  // for the handler, which may be on its way already when all else is gone
  asio::steady_timer timer(executor, timeout);
  timer.async_wait([&child, &output, &late, alive = std::weak_ptr<bool>(waiting)](boost::system::error_code stopped) {
    if (stopped || alive.expired() || child.reaped()) return;
    late = true;
    child.kill();
    boost::system::error_code closed;
    output.close(closed);  // what it has started may keep the other end open
  });
  const auto text = co_await read_all(output);
  boost::system::error_code ignored;
  output.close(ignored);  // one that writes without end is ended by that
  co_await child.ended();
  timer.cancel();
  const int code = child.reap();
  if (late) {
    answer.failure = program + " gave no answer within " + std::to_string(timeout.count() / 1000) + " s";
  } else if (code != 0) {
    // The agreed words for "none kept", which is no failure.
    if (text.find("credentials not found") == text.npos) answer.failure = program + " failed: " + first_line(text);
  } else {
    const auto json = nlohmann::json::parse(text, nullptr, false);
    if (json.is_object() && json.contains("Username") && json["Username"].is_string() && json.contains("Secret") && json["Secret"].is_string()) {
      answer.username = json["Username"].get<std::string>();
      answer.secret = json["Secret"].get<std::string>();
    } else {
      answer.failure = program + " gave an answer that is not understood";
    }
  }
  co_return answer;
}

}  // namespace

Task<HelperAnswer> ask_credential_helper(std::string name, std::string server, std::chrono::milliseconds timeout) {
  HelperAnswer answer;
  const std::string program = "docker-credential-" + name;
  if (!is_name(name)) {
    answer.failure = "the name of a credential helper is no plain name";
    co_return answer;
  }
  try {
    answer = co_await run_helper(program, server, timeout);
  } catch (const std::exception& error) { answer.failure = program + ": " + error.what(); }
  co_return answer;
}

}  // namespace pipeline::docker
