#include "orchestrators/docker/container_shell.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <optional>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/write.hpp>

#include "async/joinable_task.hpp"
#include "core/file.hpp"
#include "docker/log_frames.hpp"
#include "docker/raw_stream.hpp"
#include "orchestrators/docker/container_end.hpp"
#include "orchestrators/docker/file_copy.hpp"
#include "orchestrators/docker/own_container.hpp"
#include "orchestrators/docker/user_entry.hpp"

namespace pipeline::orchestrators {
namespace {

/// The terminal passes on each key as it is while this object lives.
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

/// Returns an own description of standard input, since what is set on it must not concern others
/// that have the terminal.
int open_input() {
  const int own = ::open("/proc/self/fd/0", O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  return own >= 0 ? own : ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
}

/// Connects a container's streams with this process's.
class Relay {
 public:
  Relay(docker::EngineApi& engine, std::string id, docker::RawStream stream, bool has_terminal,
        const asio::any_io_executor& executor)
      : engine_(engine),
        id_(std::move(id)),
        stream_(std::move(stream)),
        has_terminal_(has_terminal),
        input_(executor),
        resizes_(executor) {}

  /// Returns when the container has closed its output.
  async::Task<> run() {
    const auto executor = co_await asio::this_coro::executor;
    std::optional<RawTerminal> raw;
    if (has_terminal_) raw.emplace();
    async::JoinableTask input(executor, pass_input());
    std::optional<async::JoinableTask> sizes;
    if (has_terminal_) sizes.emplace(executor, follow_size());
    co_await pass_output();
    boost::system::error_code ignored;
    resizes_.cancel(ignored);
    input_.close(ignored);
    is_over_ = true;
    co_await input.join();
    if (sizes) co_await sizes->join();
  }

 private:
  async::Task<> pass_input() {
    struct stat status {};
    core::Descriptor file(open_input());
    const bool can_wait = ::fstat(file.get(), &status) == 0 &&
                          (has_terminal_ || S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
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
      if (got <= 0) break;
      co_await asio::async_write(stream_,
                                 asio::buffer(buffer.data(), static_cast<std::size_t>(got)),
                                 asio::redirect_error(asio::use_awaitable, error));
      if (error) co_return;
    }
    stream_.shutdown(docker::RawStream::shutdown_send, error);
  }

  async::Task<> pass_output() {
    docker::LogFrames frames([](bool is_stderr, std::string_view bytes) {
      core::write_all(is_stderr ? STDERR_FILENO : STDOUT_FILENO, bytes);
    });
    std::array<char, 65536> buffer;
    for (;;) {
      boost::system::error_code error;
      const auto got = co_await stream_.async_read_some(
          asio::buffer(buffer), asio::redirect_error(asio::use_awaitable, error));
      if (error) break;
      const std::string_view bytes(buffer.data(), got);
      if (has_terminal_)
        core::write_all(STDOUT_FILENO, bytes);
      else
        frames.feed(bytes);
    }
    frames.finish();
  }

  /// Tells the engine the terminal's size, now and whenever it changes.
  async::Task<> follow_size() {
    resizes_.add(SIGWINCH);
    boost::system::error_code cancelled;
    while (!cancelled && !is_over_) {
      winsize size{};
      if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
        const auto path = "/containers/" + id_ + "/resize?h=" + std::to_string(size.ws_row) +
                          "&w=" + std::to_string(size.ws_col);
        try {
          co_await engine_.call("POST", path);
        } catch (const core::EnvironmentError&) {  // It has ended.
        }
      }
      if (is_over_) co_return;
      co_await resizes_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
    }
  }

  docker::EngineApi& engine_;
  const std::string id_;
  docker::RawStream stream_;
  const bool has_terminal_;
  asio::posix::stream_descriptor input_;
  asio::signal_set resizes_;
  bool is_over_ = false;
};

/// The end of a container, awaited from before its start: the engine removes it then.
class EndOfShell {
 public:
  EndOfShell(docker::EngineApi& engine, std::string id, const asio::any_io_executor& executor)
      : listening_(executor),
        wait_(executor, wait(engine, std::move(id)), [this] { listening_.open(); }) {}
  async::Task<> is_awaited() { return listening_.wait(); }
  void give_up() { cancel_.stop(core::StopLevel::immediate); }
  /// Returns the exit code.
  async::Task<int> join() {
    co_await wait_.join();
    if (wait_.error() && cancel_.level() == core::StopLevel::none)
      std::rethrow_exception(wait_.error());
    co_return code_;
  }

 private:
  async::Task<> wait(docker::EngineApi& engine, std::string id) {
    const std::function<void()> on_listening = [this] { listening_.open(); };
    code_ = co_await engine.wait_container(id, "next-exit", on_listening, &cancel_);
  }

  core::CancelSource cancel_;
  async::Gate listening_;
  int code_ = 0;
  async::JoinableTask wait_;
};

/// Returns once the container is gone. The engine removes it by itself, too, and refuses to do so
/// twice at a time.
async::Task<> remove_shell(docker::EngineApi& engine, std::string id) {
  constexpr int most_looks = 200;
  constexpr std::chrono::milliseconds pause{50};
  asio::steady_timer timer(co_await asio::this_coro::executor);
  for (int look = 0; look < most_looks; ++look) {
    co_await engine.remove_container(id);
    bool is_gone = false;
    try {
      co_await engine.inspect_container(id);
    } catch (const docker::EngineError& error) {
      is_gone = error.status() == 404;
    }
    if (is_gone) co_return;
    timer.expires_after(pause);
    co_await timer.async_wait(asio::use_awaitable);
  }
}

}  // namespace

async::Task<AttemptResult> run_shell(docker::EngineApi& engine, const Attempt& attempt,
                                     ContainerOptions& place, std::string image) {
  AttemptResult result;
  const auto executor = co_await asio::this_coro::executor;
  const auto container = co_await obtain_container(engine, attempt, place);
  EndOfShell end(engine, container.id, executor);
  std::exception_ptr error;
  try {
    if (container.copies) {
      co_await copy_in(engine, attempt, container.id);
      if (!place.passwd.empty()) co_await copy_passwd(engine, place, container.id, attempt.cancel);
    }
    auto stream = co_await docker::attach_raw(engine, container.id);
    co_await end.is_awaited();
    co_await engine.start_container(container.id);
    Relay relay(engine, container.id, std::move(stream), attempt.shell->has_terminal, executor);
    co_await relay.run();
  } catch (const docker::EngineError& refused) {
    result.failure = start_failure(refused, attempt, image);
  } catch (...) {
    error = std::current_exception();
  }
  if (error || result.failure) end.give_up();
  const int code = co_await end.join();
  co_await remove_shell(engine, container.id);
  if (error) std::rethrow_exception(error);
  if (!result.failure) result.exit_code = code;
  co_return result;
}

}  // namespace pipeline::orchestrators
