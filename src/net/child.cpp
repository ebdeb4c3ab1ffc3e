#include "net/child.hpp"

#include <cerrno>
#include <csignal>
#include <optional>

#include <sys/wait.h>
#include <unistd.h>
// Boost 1.81's process.hpp uses these headers without including them.
#include <boost/optional/optional.hpp>
#include <boost/type_traits/decay.hpp>
#include <boost/type_traits/is_convertible.hpp>

#include <boost/process/v2/process.hpp>
#include <boost/process/v2/stdio.hpp>

#include "core/error.hpp"
#include "core/project.hpp"
#include "core/spawn.hpp"

namespace pipeline::net {
namespace {

namespace process = boost::process::v2;

/// Launches processes of Boost.Process by core::start_child. Boost's own launchers are unsuitable.
/// The default one forks, which copies the page tables of a large process. In the one with vfork
/// (Boost 1.81), the child, which shares the parent's memory, re-creates the event loop's epoll
/// descriptor, and calls exit() if it cannot exec, which runs destructors. Neither blocks signals
/// until exec.
struct Launcher : process::posix::default_launcher {
  std::vector<std::string> words, variables;
  std::vector<char*> arguments, environment;
  process::process_stdio stdio;
  const process::filesystem::path program;
  const pid_t parent = getpid();
  const bool own_session;
  volatile int error = 0;

  explicit Launcher(const ChildCall& call)
      : words(resolved(call.command)),
        variables(core::tool_environment(call.variables)),
        arguments(core::exec_pointers(words)),
        environment(core::exec_pointers(variables)),
        stdio{{call.input}, {call.output}, {call.errors}},
        program(words.front()),
        own_session(call.own_session) {}

  /// Returns the command with the program's path in place of its name.
  static std::vector<std::string> resolved(std::vector<std::string> command) {
    auto& name = command.front();
    const auto file = core::find_tool(name);
    if (file.empty() && name.find('/') == name.npos) throw NotOnPath("it is not on the PATH");
    name = process::filesystem::absolute(file.empty() ? name : file.string()).string();
    return command;
  }

  static void run(Launcher& self) {
    // Other children stay in this process's session, where Ctrl-C reaches them, and may outlive it.
    if (self.own_session) core::begin_child(self.parent, SIGTERM);
    // The child must not read files of the pipeline's folder, such as a configuration, by chance.
    self.error = ::chdir("/") == 0 ? 0 : errno;
    if (self.error != 0) return;
    self.error = self.stdio.on_exec_setup(self, self.program, self.arguments.data()).value();
    if (self.error != 0) return;
    core::prepare_exec();
    execvpe(self.arguments[0], self.arguments.data(), self.environment.data());
    self.error = errno;
  }

  process::process operator()(const asio::any_io_executor& executor) {
    pid = core::start_child(*this, run);
    if (pid < 0) error = errno;
    if (pid > 0 && error != 0) waitpid(pid, nullptr, 0);
    if (error == ENOENT)
      throw core::EnvironmentError(
          "its file, or the interpreter that the file's first line names, does not exist");
    if (error != 0) throw core::system_error("it cannot be run", error);
    return process::process(executor, pid);
  }
};

}  // namespace

/// Once the child is reaped its pid is forgotten, because the kernel may reuse it.
struct Child::Process {
  process::process child;
  std::optional<int> status;

  void take_status() {
    status = child.native_exit_code();
    child = process::process(child.get_executor());
  }
};

Child::Child(const asio::any_io_executor& executor, const ChildCall& call)
    : process_(std::make_unique<Process>(Process{Launcher(call)(executor), {}})) {}
Child::~Child() = default;
Child::Child(Child&&) noexcept = default;
Child& Child::operator=(Child&&) noexcept = default;

bool Child::is_running() {
  if (process_->status) return false;
  boost::system::error_code ignored;
  const bool is_running = process_->child.running(ignored);
  if (!is_running) process_->take_status();
  return is_running;
}

void Child::signal(int number) {
  if (is_running()) kill(process_->child.id(), number);
}

void Child::wait() {
  if (!is_running()) return;
  boost::system::error_code ignored;
  process_->child.wait(ignored);
  process_->take_status();
}

async::Task<> Child::ended() {
  if (!is_running()) co_return;
  // Set if the kernel has no free descriptor to wait on.
  boost::system::error_code failed;
  co_await process_->child.async_wait(asio::redirect_error(asio::use_awaitable, failed));
  if (failed)
    wait();
  else
    process_->take_status();
}

int Child::exit_code() const {
  const int status = process_->status.value_or(-1);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace pipeline::net
