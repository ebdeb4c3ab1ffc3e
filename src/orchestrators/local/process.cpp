#include "orchestrators/local/process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <exception>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/redirect_error.hpp>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/spawn.hpp"

namespace pipeline::orchestrators {
namespace {

using namespace asio::experimental::awaitable_operators;

/// All that the child needs.
struct Launch {
  const char* program;
  char* const* arguments;
  char* const* shell_arguments;
  char* const* environment;
  const char* folder;
  const std::vector<int>* control_groups;
  const std::vector<int>* inherited;
  int null, out, err;
  pid_t parent;
  std::atomic<pid_t>* group;  ///< The guardian's place for it, or null.
  volatile int error;
};

/// The child's side.
void launch(Launch& with) {
  core::begin_child(with.parent, SIGKILL);
  if (with.group) *with.group = getpid();
  dup2(with.null, 0);
  dup2(with.out, 1);
  dup2(with.err, 2);
  for (int file : *with.control_groups)
    if (write(file, "0", 1) < 0) with.error = errno;
  if (!with.error && chdir(with.folder) != 0) with.error = errno;
  if (with.error) _exit(127);
  close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  for (int file : *with.inherited) fcntl(file, F_SETFD, 0);
  core::unblock_signals();
  execve(with.program, with.arguments, with.environment);
  if (errno == ENOEXEC)
    execve("/bin/sh", with.shell_arguments,
           with.environment);  // a script without `#!`, as execvp(3)
  with.error = errno;
}

/// A process that has been started, until it has been waited for.
class Running {
 public:
  Running(asio::any_io_executor executor, pid_t pid, int out, int err, OutputCallback& output,
          core::CancelSource& cancel, std::chrono::milliseconds grace)
      : pid_(pid),
        out_(executor, out),
        err_(executor, err),
        exit_(executor),
        wake_(executor),
        never_(executor),
        output_(output),
        cancel_(cancel),
        grace_(grace) {
    wake_.expires_at(asio::steady_timer::time_point::max());
    never_.expires_at(asio::steady_timer::time_point::max());
    if (int fd = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)); fd >= 0) exit_.assign(fd);
  }

  /// Also when the coroutine is destroyed half-way: nothing is left running.
  ~Running() {
    if (pid_ <= 0) return;
    kill(-pid_, SIGKILL);
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED);
  }

  async::Task<ProcessEnd> end() {
    core::CancelSource::Listener listener(
        cancel_, [this](core::StopLevel) { wake_.expires_after(std::chrono::seconds(0)); });
    co_await (ended() || (read(out_, Stream::out) && read(err_, Stream::err) && stopper() &&
                          never_.async_wait(asio::use_awaitable)));
    // The process is a zombie still, so its group's number cannot belong to anybody else.
    kill(-pid_, SIGKILL);
    ProcessEnd end;
    siginfo_t info{};
    while (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    end.exited = info.si_code == CLD_EXITED;
    end.code = info.si_status;
    end.stopped = stopped_;
    end.ignored_stop = ignored_;
    end.pipe_held = !drain(out_, Stream::out);
    end.pipe_held |= !drain(err_, Stream::err);
    if (error_) std::rethrow_exception(error_);
    co_return end;
  }

 private:
  async::Task<> ended() {
    if (exit_.is_open()) {
      co_await exit_.async_wait(asio::posix::stream_descriptor::wait_read, asio::use_awaitable);
      co_return;
    }
    asio::steady_timer pause(exit_.get_executor());  // a kernel without pidfd_open
    for (siginfo_t info{};
         waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == 0;) {
      pause.expires_after(std::chrono::milliseconds(5));
      co_await pause.async_wait(asio::use_awaitable);
    }
  }

  enum class ReadState { more, nothing_now, closed };

  /// Reads once. An exception of the callback ends the process; it is kept, and what still comes is
  /// dropped.
  ReadState take(asio::posix::stream_descriptor& pipe, Stream stream) {
    std::array<char, 65536> buffer;
    auto got = ::read(pipe.native_handle(), buffer.data(), buffer.size());
    if (got == 0) return ReadState::closed;
    if (got < 0)
      return errno == EINTR    ? ReadState::more
             : errno == EAGAIN ? ReadState::nothing_now
                               : ReadState::closed;
    if (error_) return ReadState::more;
    try {
      output_(stream, {buffer.data(), static_cast<std::size_t>(got)});
    } catch (...) {
      error_ = std::current_exception();
      if (pid_ > 0) kill(-pid_, SIGKILL);
    }
    return ReadState::more;
  }

  async::Task<> read(asio::posix::stream_descriptor& pipe, Stream stream) {
    do co_await pipe.async_wait(asio::posix::stream_descriptor::wait_read, asio::use_awaitable);
    while (take(pipe, stream) != ReadState::closed);
  }

  /// What is in the pipe when all who wrote are dead. False if it is open still: somebody has left
  /// the group and lives.
  bool drain(asio::posix::stream_descriptor& pipe, Stream stream) {
    ReadState left = ReadState::more;
    for (int rounds = 0; rounds < 256 && left == ReadState::more; ++rounds)
      left = take(pipe, stream);
    return left == ReadState::closed;
  }

  async::Task<> stopper() {
    boost::system::error_code ignored;
    for (;;) {
      co_await wake_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
      auto now = std::chrono::steady_clock::now();
      if (cancel_.level() == core::StopLevel::immediate || (stopped_ && now >= deadline_)) {
        ignored_ = cancel_.level() != core::StopLevel::immediate;
        stopped_ = true;
        kill(-pid_, SIGKILL);
        wake_.expires_at(asio::steady_timer::time_point::max());
      } else if (cancel_.level() == core::StopLevel::graceful) {
        if (!std::exchange(stopped_, true)) {
          kill(-pid_, SIGTERM);
          deadline_ = now + grace_;
        }
        wake_.expires_at(deadline_);
      }
    }
  }

  pid_t pid_;
  asio::posix::stream_descriptor out_, err_, exit_;
  asio::steady_timer wake_, never_;
  OutputCallback& output_;
  core::CancelSource& cancel_;
  std::chrono::milliseconds grace_;
  std::chrono::steady_clock::time_point deadline_{};
  std::exception_ptr error_;
  bool stopped_ = false, ignored_ = false;
};

}  // namespace

async::Task<ProcessEnd> run_process(const ProcessOptions& options, ProcessReaper& reaper,
                                    core::CancelSource& cancel, OutputCallback output) {
  auto arguments = options.arguments;
  std::vector<std::string> shell_arguments{"/bin/sh", options.program.string()};
  shell_arguments.insert(shell_arguments.end(), arguments.begin() + 1, arguments.end());
  std::vector<std::string> environment;
  for (auto& [name, value] : options.environment) environment.push_back(name + "=" + value);
  auto argument_pointers = core::exec_pointers(arguments),
       shell_pointers = core::exec_pointers(shell_arguments),
       environment_pointers = core::exec_pointers(environment);

  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0) throw core::system_error("cannot make a pipe", errno);
  core::Descriptor out_read(out[0]), out_write(out[1]);
  if (pipe2(err, O_CLOEXEC) != 0) throw core::system_error("cannot make a pipe", errno);
  core::Descriptor err_read(err[0]), err_write(err[1]),
      null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  for (int file : {out[0], err[0]}) fcntl(file, F_SETFL, O_NONBLOCK);

  struct Place {
    std::atomic<pid_t>* group;
    ~Place() {
      if (group) *group = ProcessReaper::unused;
    }
  } place{reaper.place()};
  Launch with{options.program.c_str(),
              argument_pointers.data(),
              shell_pointers.data(),
              environment_pointers.data(),
              options.folder.c_str(),
              &options.control_groups,
              &options.inherited,
              null.get(),
              out[1],
              err[1],
              getpid(),
              place.group,
              0};
  const pid_t pid = core::start_child(with, launch);
  if (pid < 0) with.error = errno;
  ProcessEnd end;
  end.start_error = with.error;
  if (with.error) {
    while (pid > 0 && waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    co_return end;
  }
  out_write = core::Descriptor();
  err_write = core::Descriptor();
  Running running(co_await asio::this_coro::executor, pid, out_read.release(), err_read.release(),
                  output, cancel, options.grace);
  end = co_await running.end();
  co_return end;
}

std::filesystem::path find_program(const std::string& name, std::string_view path,
                                   const std::filesystem::path& folder) {
  auto executable = [](const std::filesystem::path& file) {
    struct stat info;
    return stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
           access(file.c_str(), X_OK) == 0;
  };
  if (name.find('/') != name.npos) {
    auto file = folder / name;
    return executable(file) ? file : std::filesystem::path();
  }
  if (name.empty()) return {};
  for (std::size_t from = 0; from <= path.size();) {
    auto to = std::min(path.find(':', from), path.size());
    auto file = (to == from ? folder : std::filesystem::path(path.substr(from, to - from))) / name;
    if (executable(file)) return file;
    from = to + 1;
  }
  return {};
}

}  // namespace pipeline::orchestrators
