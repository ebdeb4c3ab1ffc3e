#include "net/program.hpp"

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

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/spawn.hpp"

namespace pipeline::net {
namespace {

constexpr std::size_t longest_answer = 1 << 20;

/// A file without a name: unlike a pipe, it cannot break when the program does not read it, nor
/// stop it when nobody reads what it writes.
core::Descriptor memory_file(const std::string& text = {}) {
  core::Descriptor file(memfd_create("program", MFD_CLOEXEC));
  if (!file || write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      lseek(file.get(), 0, SEEK_SET) != 0)
    throw core::system_error("it cannot be given its input", errno);
  return file;
}

std::string content_of(const core::Descriptor& file) {
  std::string text(longest_answer, '\0');
  const auto count = pread(file.get(), text.data(), text.size(), 0);
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return text;
}

/// Reads to the end, or until there is too much to be an answer.
async::Task<std::string> read_all(asio::readable_pipe& pipe) {
  std::string text;
  std::array<char, 4096> piece{};
  while (text.size() < longest_answer) {
    boost::system::error_code end;
    const auto count = co_await pipe.async_read_some(
        asio::buffer(piece), asio::redirect_error(asio::use_awaitable, end));
    if (end) break;
    text.append(piece.data(), count);
  }
  co_return text;
}

/// The caller's variables, with these in the place of those of the same names.
std::vector<std::string> with_variables(const std::vector<std::string>& own) {
  std::vector<std::string> all = own;
  for (char** variable = environ; *variable; ++variable) {
    const std::string text = *variable;
    const auto name = text.substr(0, text.find('=') + 1);
    bool replaced = false;
    for (const auto& each : own) replaced |= each.starts_with(name);
    if (!replaced) all.push_back(text);
  }
  return all;
}

/// A running program; killed and reaped at destruction if that has not happened before.
class Child {
 public:
  Child(const ProgramCall& call, int input, int output, int errors) {
    auto words = call.command, variables = with_variables(call.variables);
    const auto arguments = core::exec_pointers(words), environment = core::exec_pointers(variables);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
    const int error = posix_spawnp(&pid_, words.front().c_str(), &actions, nullptr,
                                   arguments.data(), environment.data());
    posix_spawn_file_actions_destroy(&actions);
    if (error == ENOENT) throw core::EnvironmentError("it is not on the PATH");
    if (error != 0) throw core::system_error("it cannot be run", error);
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
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  async::Task<> ended() const {
    core::Descriptor handle(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
    if (!handle) co_return;
    asio::posix::stream_descriptor waiter(co_await asio::this_coro::executor, dup(handle.get()));
    boost::system::error_code ignored;
    co_await waiter.async_wait(asio::posix::stream_descriptor::wait_read,
                               asio::redirect_error(asio::use_awaitable, ignored));
  }

 private:
  pid_t pid_ = 0;
};

}  // namespace

async::Task<ProgramAnswer> run_program(ProgramCall call) {
  const auto executor = co_await asio::this_coro::executor;
  ProgramAnswer answer;
  const auto input = memory_file(call.input), errors = memory_file();
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw core::system_error("it cannot be run", errno);
  asio::readable_pipe output(executor, ends[0]);
  core::Descriptor theirs(ends[1]);
  Child child(call, input.get(), theirs.get(), errors.get());
  theirs = core::Descriptor();
  const auto waiting = std::make_shared<bool>(
      true);  // for the handler, which may be on its way already when all else is gone
  asio::steady_timer timer(executor, call.timeout);
  timer.async_wait([&child, &output, &answer,
                    alive = std::weak_ptr<bool>(waiting)](boost::system::error_code stopped) {
    if (stopped || alive.expired() || child.reaped()) return;
    answer.late = true;
    child.kill();
    boost::system::error_code closed;
    output.close(closed);  // what it has started may keep the other end open
  });
  auto text = co_await read_all(output);
  answer.output = std::move(text);
  boost::system::error_code ignored;
  output.close(ignored);  // one that writes without end is ended by that
  co_await child.ended();
  timer.cancel();
  answer.code = child.reap();
  answer.errors = content_of(errors);
  co_return answer;
}

}  // namespace pipeline::net
