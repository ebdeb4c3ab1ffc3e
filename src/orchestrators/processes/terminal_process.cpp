#include "orchestrators/processes/terminal_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.hpp"
#include "core/spawn.hpp"
#include "orchestrators/processes/sandbox.hpp"

namespace pipeline::orchestrators::processes {
namespace {

/// Lets this process ignore Ctrl-C while this object lives, because Ctrl-C is meant for the process
/// that is run on the terminal.
class IgnoredInterrupts {
 public:
  IgnoredInterrupts() {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGINT, &ignore, &interrupt_);
    sigaction(SIGQUIT, &ignore, &quit_);
  }
  ~IgnoredInterrupts() {
    sigaction(SIGINT, &interrupt_, nullptr);
    sigaction(SIGQUIT, &quit_, nullptr);
  }
  IgnoredInterrupts(const IgnoredInterrupts&) = delete;
  IgnoredInterrupts& operator=(const IgnoredInterrupts&) = delete;

 private:
  struct sigaction interrupt_ {
  }, quit_{};
};

/// Data for the child, prepared before its start.
struct TerminalLaunch {
  const ProcessOptions& options;
  char* const* arguments;
  char* const* environment;
  int error = 0;
};

void launch_on_terminal(TerminalLaunch& launch) {
  const auto& options = launch.options;
  core::reset_signals();
  for (const int group : options.control_groups)
    if (::write(group, "0", 1) < 0) launch.error = errno;
  if (!launch.error && ::chdir(options.folder.c_str()) != 0) launch.error = errno;
  if (!launch.error && options.sandbox)
    launch.error = Sandbox::enter(options.sandbox->descriptor());
  if (launch.error) _exit(127);
  for (const int file : options.inherited) ::fcntl(file, F_SETFD, 0);
  core::prepare_exec();
  ::execve(options.program.c_str(), launch.arguments, launch.environment);
  launch.error = errno;
}

}  // namespace

int run_on_terminal(const ProcessOptions& options) {
  if (options.program.empty())
    throw core::EnvironmentError("there is no program '" + options.arguments.at(0) + "' on PATH");
  auto arguments = options.arguments;
  std::vector<std::string> environment;
  for (const auto& [name, value] : options.environment) environment.push_back(name + "=" + value);
  const auto argument_pointers = core::exec_pointers(arguments);
  const auto environment_pointers = core::exec_pointers(environment);
  TerminalLaunch launch{options, argument_pointers.data(), environment_pointers.data()};
  const IgnoredInterrupts ignored;
  const pid_t child = core::start_child(launch, launch_on_terminal);
  if (child < 0) throw core::system_error("cannot start " + options.program.string(), errno);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (launch.error)
    throw core::system_error("cannot start " + options.program.string(), launch.error);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace pipeline::orchestrators::processes
