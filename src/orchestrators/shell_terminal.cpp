#include "orchestrators/shell_terminal.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <optional>

#include "async/joinable_task.hpp"
#include "core/error.hpp"
#include "core/file.hpp"

namespace pipeline::orchestrators {
namespace {

/// Keeps the terminal in raw mode while this object lives: each key is passed on unchanged.
class RawTerminal {
 public:
  RawTerminal() : is_terminal_(::tcgetattr(STDIN_FILENO, &before_) == 0) {
    auto raw = before_;
    ::cfmakeraw(&raw);
    if (is_terminal_) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
  }
  ~RawTerminal() {
    if (is_terminal_) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

 private:
  termios before_{};
  const bool is_terminal_;
};

/// Opens standard input anew, because O_NONBLOCK must not affect other processes that have the
/// terminal open. Falls back to a duplicate where it cannot be opened again.
int open_input() {
  const int own = ::open("/proc/self/fd/0", O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  return own >= 0 ? own : ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
}

class ShellTerminal {
 public:
  ShellTerminal(RemoteShell shell, bool has_terminal, const asio::any_io_executor& executor)
      : shell_(std::move(shell)),
        has_terminal_(has_terminal),
        input_(executor),
        resizes_(executor) {}

  async::Task<> run() {
    const auto executor = co_await asio::this_coro::executor;
    std::optional<RawTerminal> raw;
    if (has_terminal_) raw.emplace();
    if (has_terminal_) co_await send_size();
    async::JoinableTask input(executor, pass_input());
    std::optional<async::JoinableTask> sizes;
    if (has_terminal_) sizes.emplace(executor, follow_size());
    std::exception_ptr error;
    try {
      co_await shell_.pass_output();
    } catch (...) {
      error = std::current_exception();
    }
    boost::system::error_code ignored;
    resizes_.cancel(ignored);
    input_.close(ignored);
    is_over_ = true;
    co_await input.join();
    if (sizes) co_await sizes->join();
    if (error) std::rethrow_exception(error);
  }

 private:
  /// Ignores errors of the connection, because pass_output() throws them, too.
  async::Task<> pass_input() {
    try {
      co_await pass_all_input();
      if (!is_over_) co_await shell_.end_input();
    } catch (const core::EnvironmentError&) {
    }
  }

  async::Task<> pass_all_input() {
    struct stat status {};
    core::Descriptor file(open_input());
    // Input is a terminal also without `has_terminal_`, if only the output goes elsewhere. Files
    // are always readable, and cannot be waited for.
    const bool can_wait =
        ::fstat(file.get(), &status) == 0 &&
        (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode) || ::isatty(file.get()) == 1);
    if (can_wait) input_.assign(file.release());
    std::array<char, 16384> buffer;
    boost::system::error_code error;
    for (;;) {
      if (can_wait)
        co_await input_.async_wait(asio::posix::stream_descriptor::wait_read,
                                   asio::redirect_error(asio::use_awaitable, error));
      if (error || is_over_) co_return;
      const auto got =
          ::read(can_wait ? input_.native_handle() : file.get(), buffer.data(), buffer.size());
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (got <= 0) co_return;
      std::string bytes(buffer.data(), static_cast<std::size_t>(got));
      co_await shell_.send(std::move(bytes));
    }
  }

  async::Task<> send_size() {
    winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) co_return;
    try {
      co_await shell_.resize(size.ws_row, size.ws_col);
    } catch (const core::EnvironmentError&) {  // The shell has ended.
    }
  }

  async::Task<> follow_size() {
    resizes_.add(SIGWINCH);
    boost::system::error_code cancelled;
    while (!is_over_) {
      co_await send_size();  // The size may have changed before the signal was awaited.
      if (is_over_) co_return;
      co_await resizes_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
      if (cancelled) co_return;
    }
  }

  const RemoteShell shell_;
  const bool has_terminal_;
  asio::posix::stream_descriptor input_;
  asio::signal_set resizes_;
  bool is_over_ = false;
};

}  // namespace

async::Task<> connect_terminal(RemoteShell shell, bool has_terminal) {
  const auto executor = co_await asio::this_coro::executor;
  ShellTerminal terminal(std::move(shell), has_terminal, executor);
  co_await terminal.run();
}

}  // namespace pipeline::orchestrators
