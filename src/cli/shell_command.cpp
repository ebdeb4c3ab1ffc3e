// `pipe shell`: opens a shell as an attempt of a step had it.
#include <unistd.h>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "driver/attempt_shell.hpp"

namespace pipeline::cli {

core::ExitCode shell_command(Context& context) {
  const auto& options = context.options();
  return driver::open_shell(
      context, {.run = options.run,
                .step = options.step,
                .number = options.attempt,
                .rank = options.shell.rank,
                .command = options.shell.command,
                .has_terminal = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1});
}

}  // namespace pipeline::cli
