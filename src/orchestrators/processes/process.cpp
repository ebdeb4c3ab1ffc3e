#include "orchestrators/processes/process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <exception>
#include <memory>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>

#include "async/sleep.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/process_fields.hpp"
#include "orchestrators/processes/sandbox.hpp"
#include "orchestrators/usage/tree_memory.hpp"

namespace pipeline::orchestrators::processes {
namespace {

using namespace asio::experimental::awaitable_operators;

/// Returns true for a zombie, and for a process that does not exist any more.
bool is_zombie(pid_t pid) {
  const auto fields = core::process_fields(pid);
  return fields.starts_with('Z') || (kill(pid, 0) != 0 && errno == ESRCH);
}

constexpr std::chrono::milliseconds first_pause{4}, max_pause{100};
constexpr int cost_share = 600;  ///< Samples of memory take at most 1/600 of a CPU.

/// Returns the pause before the next sample of memory, which is short at first, for short steps.
/// @param cost CPU time of the last sample
std::chrono::nanoseconds sample_pause(std::chrono::nanoseconds age, std::chrono::nanoseconds cost) {
  using std::chrono::nanoseconds;
  return std::max(cost * cost_share, std::clamp<nanoseconds>(age / 4, first_pause, max_pause));
}

constexpr const char* reaper_is_gone =
    "the process that watches over the steps was killed, and the step with it";

core::Usage usage_of(const rusage& used) {
  const auto time = [](const timeval& value) {
    return std::chrono::seconds(value.tv_sec) + std::chrono::microseconds(value.tv_usec);
  };
  constexpr std::uint64_t kibibyte = 1024, block = 512;
  core::Usage usage;
  usage.user = time(used.ru_utime);
  usage.system = time(used.ru_stime);
  if (used.ru_maxrss > 0) usage.peak_memory = static_cast<std::uint64_t>(used.ru_maxrss) * kibibyte;
  usage.read = static_cast<std::uint64_t>(used.ru_inblock) * block;
  usage.written = static_cast<std::uint64_t>(used.ru_oublock) * block;
  return usage;
}

using Clock = std::chrono::steady_clock;

/// Pause between two looks at processes that were asked to end.
constexpr std::chrono::milliseconds stop_pause{10};
/// How long to wait for the end of a sample before the next look.
constexpr std::chrono::milliseconds sample_look_pause{1};

/// The data that the event loop shares with the pool's thread; `is_busy` tells which of them may
/// use it. Nothing else is shared, so that a loop may be destroyed while a sample is taken.
struct Sampling {
  explicit Sampling(pid_t process) : tree(process) {}

  usage::TreeMemory tree;
  std::chrono::nanoseconds cost{};
  std::atomic<bool> is_busy = false;
};

/// A process from the request for its start until it has been waited for.
class Running {
 public:
  Running(const asio::any_io_executor& executor, ProcessReaper& reaper, int reply, int out, int err,
          OutputCallback& output, core::CancelSource& cancel, const ProcessOptions& options)
      : reaper_(reaper),
        reply_(executor, reply),
        out_(executor, out),
        err_(executor, err),
        exit_(executor),
        room_for_exit_(dup(reply)),
        wake_(executor),
        output_(output),
        cancel_(cancel),
        grace_(options.grace),
        measured_on_(options.measured_on) {
    wake_.expires_at(asio::steady_timer::time_point::max());
  }

  /// Kills the process, also if the coroutine is destroyed early.
  ~Running() {
    if (pid_ <= 0) return;
    kill(-pid_, SIGKILL);
    reaper_.finish(pid_);
    ProcessReaper::read_end(reply_.native_handle());
  }

  /// Waits until the program is running. @return errno if it could not be started
  async::Task<int> started() {
    co_await reply_.async_wait(asio::posix::stream_descriptor::wait_read, asio::use_awaitable);
    const auto start = ProcessReaper::read_start(reply_.native_handle());
    if (!start) throw core::EnvironmentError(reaper_is_gone);
    if (start->error) co_return start->error;
    pid_ = start->pid;
    began_ = std::chrono::steady_clock::now();
    room_for_exit_ = core::Descriptor();
    const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
    if (fd < 0 && errno != ENOSYS) throw core::system_error("cannot wait for its process", errno);
    if (fd >= 0) exit_.assign(fd);
    co_return 0;
  }

  pid_t pid() const { return pid_; }

  /// Passes on the output, stops the process if that is asked for, and returns once the process
  /// and its descendants have ended.
  async::Task<ProcessEnd> end() {
    core::CancelSource::Listener listener(
        cancel_, [this](core::StopLevel) { wake_.expires_after(std::chrono::seconds(0)); });
    co_await (ended() ||
              (read(out_, Stream::out) && read(err_, Stream::err) && stopper() && measure_tree()));
    // The process is still a zombie, so its group's number cannot have been reused.
    kill(-pid_, SIGKILL);
    reaper_.finish(pid_);
    co_await reply_.async_wait(asio::posix::stream_descriptor::wait_read, asio::use_awaitable);
    pid_ = 0;
    const auto answer = ProcessReaper::read_end(reply_.native_handle());
    if (!answer) throw core::EnvironmentError(reaper_is_gone);
    ProcessEnd end;
    end.exited = answer->code == CLD_EXITED;
    end.code = answer->status;
    end.left = answer->left;
    end.usage = usage_of(answer->usage);
    if (tree_peak_ > end.usage.peak_memory.value_or(0)) end.usage.peak_memory = tree_peak_;
    end.began = began_;
    end.ended = ended_;
    end.stopped = stopped_;
    end.ignored_stop = ignored_;
    end.pipe_held = !drain(out_, Stream::out);
    end.pipe_held |= !drain(err_, Stream::err);
    if (error_) std::rethrow_exception(error_);
    co_return end;
  }

 private:
  /// Waits for the end of the process, and of those that were asked to end with it.
  async::Task<> ended() {
    if (exit_.is_open()) {
      co_await exit_.async_wait(asio::posix::stream_descriptor::wait_read, asio::use_awaitable);
    } else {
      asio::steady_timer pause(exit_.get_executor());  // Kernels without pidfd_open get here.
      while (!is_zombie(pid_)) {
        pause.expires_after(std::chrono::milliseconds(5));
        co_await pause.async_wait(asio::use_awaitable);
      }
    }
    // The programs under a shell that was stopped end later than the shell.
    const auto is_alive = [](pid_t pid) { return !is_zombie(pid); };
    while (std::ranges::any_of(stopping_, is_alive)) co_await async::sleep(stop_pause);
    ended_ = std::chrono::steady_clock::now();
  }

  /// Sends SIGTERM to the process and its descendants, whatever groups they have made.
  void ask_to_end() {
    stopping_ = usage::descendants_of(pid_);
    kill(-pid_, SIGTERM);
    for (const auto pid : stopping_)
      if (getpgid(pid) != pid_) kill(pid, SIGTERM);
  }

  /// Samples the memory of the process and its descendants. Ends when it is cancelled, after the
  /// sample that has begun.
  async::Task<> measure_tree() {
    co_await asio::this_coro::throw_if_cancelled(false);
    if (!measured_on_) co_return;
    const auto sampling = std::make_shared<Sampling>(pid_);
    asio::steady_timer pause(exit_.get_executor());
    boost::system::error_code ignored;
    constexpr auto none = asio::cancellation_type::none;
    for (auto is_over = false; !is_over;) {
      pause.expires_after(sample_pause(Clock::now() - began_, sampling->cost));
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
      if ((co_await asio::this_coro::cancellation_state).cancelled() != none) co_return;
      sampling->is_busy = true;
      asio::post(*measured_on_, [sampling] {
        sampling->cost = sampling->tree.sample();
        sampling->is_busy = false;
      });
      while (sampling->is_busy) {
        pause.expires_after(sample_look_pause);
        co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
      }
      tree_peak_ = sampling->tree.peak();
      is_over = (co_await asio::this_coro::cancellation_state).cancelled() != none;
    }
  }

  enum class ReadState { more, nothing_now, closed };

  /// Reads once. An exception of the callback is kept and ends the process; later output is
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

  /// Reads the rest of the pipe when all known writers are dead. Returns false if it is still open:
  /// a process has left the group and is alive.
  bool drain(asio::posix::stream_descriptor& pipe, Stream stream) {
    ReadState left = ReadState::more;
    constexpr int max_rounds = 256;  // A process that is still alive could write without end.
    for (int rounds = 0; rounds < max_rounds && left == ReadState::more; ++rounds)
      left = take(pipe, stream);
    return left == ReadState::closed;
  }

  /// Sends the signals when `cancel_` is stopped. Returns when this coroutine is cancelled; an
  /// exception instead would cost more time than a short process takes.
  async::Task<> stopper() {
    co_await asio::this_coro::throw_if_cancelled(false);
    boost::system::error_code ignored;
    for (;;) {
      co_await wake_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
      const auto state = co_await asio::this_coro::cancellation_state;
      if (state.cancelled() != asio::cancellation_type::none) co_return;
      auto now = std::chrono::steady_clock::now();
      if (cancel_.level() == core::StopLevel::immediate || (stopped_ && now >= deadline_)) {
        ignored_ = cancel_.level() != core::StopLevel::immediate;
        stopped_ = true;
        stopping_.clear();
        kill(-pid_, SIGKILL);
        wake_.expires_at(asio::steady_timer::time_point::max());
      } else if (cancel_.level() == core::StopLevel::graceful) {
        if (!std::exchange(stopped_, true)) {
          ask_to_end();
          deadline_ = now + grace_;
        }
        wake_.expires_at(deadline_);
      }
    }
  }

  ProcessReaper& reaper_;
  pid_t pid_ = 0;  ///< 0: not running.
  asio::posix::stream_descriptor reply_, out_, err_, exit_;
  core::Descriptor room_for_exit_;  ///< Reserves a descriptor number for that of `exit_`.
  asio::steady_timer wake_;
  OutputCallback& output_;
  core::CancelSource& cancel_;
  std::chrono::milliseconds grace_;
  asio::thread_pool* measured_on_;
  std::uint64_t tree_peak_ = 0;  ///< Bytes.
  std::vector<pid_t> stopping_;  ///< Processes that got SIGTERM; empty again after SIGKILL.
  std::chrono::steady_clock::time_point deadline_{}, began_{}, ended_{};
  std::exception_ptr error_;
  bool stopped_ = false, ignored_ = false;
};

}  // namespace

async::Task<ProcessEnd> run_process(const ProcessOptions& options, ProcessReaper& reaper,
                                    core::CancelSource& cancel, OutputCallback output) {
  std::vector<std::string> environment;
  for (auto& [name, value] : options.environment) environment.push_back(name + "=" + value);

  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0) throw core::system_error("cannot make a pipe", errno);
  core::Descriptor out_read(out[0]), out_write(out[1]);
  if (pipe2(err, O_CLOEXEC) != 0) throw core::system_error("cannot make a pipe", errno);
  core::Descriptor err_read(err[0]), err_write(err[1]);
  for (int file : {out[0], err[0]}) fcntl(file, F_SETFL, O_NONBLOCK);

  const int sandbox = options.sandbox ? options.sandbox->descriptor() : -1;
  auto reply = reaper.launch({options.program, options.arguments, environment, options.folder,
                              out[1], err[1], options.control_groups, options.inherited, sandbox});
  out_write = core::Descriptor();
  err_write = core::Descriptor();
  Running running(co_await asio::this_coro::executor, reaper, reply.release(), out_read.release(),
                  err_read.release(), output, cancel, options);
  ProcessEnd end;
  end.start_error = co_await running.started();
  if (!end.start_error && options.on_start) options.on_start(running.pid());
  if (!end.start_error) end = co_await running.end();
  co_return end;
}

std::filesystem::path find_program(const std::string& name, std::string_view path,
                                   const std::filesystem::path& folder) {
  auto executable = [](const std::string& file) {
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
    auto file = to == from ? folder.string() : std::string(path.substr(from, to - from));
    if (!file.empty() && !file.ends_with('/')) file += '/';
    file += name;
    if (executable(file)) return file;
    from = to + 1;
  }
  return {};
}

}  // namespace pipeline::orchestrators::processes
