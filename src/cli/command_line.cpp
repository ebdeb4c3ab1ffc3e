#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "cli/arguments.hpp"
#include "cli/command_line.hpp"
#include "cli/context.hpp"
#include "cli/profiles.hpp"
#include "cli/report_error.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/spawn.hpp"

namespace pipeline::cli {
namespace {

/// Returns true for `--output json`. Also works for a command line that cannot be parsed, because
/// programs read the error as JSON, too.
bool asks_for_json(const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i] == "--output=json" ||
        (arguments[i] == "--output" && i + 1 < arguments.size() && arguments[i + 1] == "json"))
      return true;
  return false;
}

/// Raises a limit of the stack that is too small for nested documents. Sets the size of threads'
/// stacks, too, which glibc has read at its start. Throws EnvironmentError if the hard limit is too
/// small.
void raise_stack() {
  constexpr rlim_t min_stack = 1 << 20, usual_stack = 8 << 20;
  rlimit limit{};
  if (::getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= min_stack) return;
  const auto given = limit.rlim_cur;
  limit.rlim_cur = std::clamp(limit.rlim_max, min_stack, usual_stack);
  limit.rlim_max = std::max(limit.rlim_max, min_stack);  // Root may raise the hard limit.
  if (::setrlimit(RLIMIT_STACK, &limit) != 0)
    throw core::EnvironmentError("the stack may have only " + std::to_string(given >> 10) +
                                     " KiB here (`ulimit -s`), and `pipe` needs 1 MiB",
                                 {"`ulimit -s` without a number shows the limit; a new shell "
                                  "usually has 8 MiB"});
#ifdef __GLIBC__
  pthread_attr_t threads;
  if (::pthread_getattr_default_np(&threads) != 0) return;
  if (::pthread_attr_setstacksize(&threads, limit.rlim_cur) == 0)
    ::pthread_setattr_default_np(&threads);
  ::pthread_attr_destroy(&threads);
#endif
}

}  // namespace

int run_command_line(const std::vector<std::string>& arguments, const Options& start) {
  // A closed reader or a full quota must not kill a run and leave its containers behind. The
  // signals get an empty handler, because the steps would inherit SIG_IGN.
  for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, [](int) {});
  // Opens closed standard streams: a file of the store could otherwise get such a stream's number,
  // and the output would be written into the file.
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0) [[maybe_unused]]
      const int same = ::open("/dev/null", O_RDWR);
  core::raise_open_files();
  try {
    raise_stack();
    auto parsed = parse_arguments(arguments, start);
    if (!parsed.command) {
      Context(std::move(parsed.options)).print(parsed.text);
      return 0;
    }
    begin_project(parsed.options, arguments.front());
    use_profile(parsed.options);
    Context context(std::move(parsed.options));
    return static_cast<int>(parsed.command(context));
  } catch (...) {
    return static_cast<int>(write_error(std::current_exception(), asks_for_json(arguments)));
  }
}

}  // namespace pipeline::cli
