#include <fcntl.h>
#include <unistd.h>

#include <csignal>

#include "cli/arguments.hpp"
#include "cli/command_line.hpp"
#include "cli/context.hpp"
#include "cli/profiles.hpp"
#include "cli/report_error.hpp"
#include "core/file.hpp"
#include "core/spawn.hpp"

namespace pipeline::cli {
namespace {

/// Returns true for `--output json`, also in a command line that cannot be parsed: programs read
/// its error, too.
bool asks_for_json(const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i] == "--output=json" ||
        (arguments[i] == "--output" && i + 1 < arguments.size() && arguments[i + 1] == "json"))
      return true;
  return false;
}

}  // namespace

int run_command_line(const std::vector<std::string>& arguments, const Options& start) {
  // A reader that closes its end must not kill a run and leave its containers behind. This is a
  // handler, because the steps would inherit SIG_IGN.
  for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, [](int) {});
  // A file of the store would take the number of a closed stream, and get the output.
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0) [[maybe_unused]]
      const int same = ::open("/dev/null", O_RDWR);
  core::raise_open_files();
  try {
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
