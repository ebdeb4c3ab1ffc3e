#include "engine/attempt/python_stacks.hpp"

#include <exception>
#include <utility>

#include "core/diagnostic.hpp"
#include "core/log.hpp"
#include "core/text.hpp"

namespace pipeline::engine {
namespace {

constexpr std::size_t max_stack_lines = 60, max_stack_width = 300;

/// Sets `pids` to the Python processes whose `PIPE_` variables equal those of the shell, so that
/// they belong to the same process of the step. If a node runs several programs (torchrun sets
/// LOCAL_WORLD_SIZE), RANK has to be equal as well.
constexpr const char* find_python =
    "pids=; marks=3\n"
    "set -- -e \"PIPE_RUN_ID=$PIPE_RUN_ID\" -e \"PIPE_STEP_NAME=$PIPE_STEP_NAME\""
    " -e \"PIPE_ATTEMPT=$PIPE_ATTEMPT\"\n"
    "if [ -n \"$PIPE_NODE_RANK\" ]; then\n"
    "  set -- \"$@\" -e \"PIPE_NODE_RANK=$PIPE_NODE_RANK\"; marks=4\n"
    "  [ \"$LOCAL_WORLD_SIZE\" = 1 ] || { set -- \"$@\" -e \"RANK=$RANK\"; marks=5; }\n"
    "fi\n"
    // A single `ls` reads the programs of all processes: a machine may have thousands.
    "for pid in $(ls -l /proc/[0-9]*/exe 2>/dev/null | sed -n"
    " -e 's|.* /proc/\\([0-9]*\\)/exe -> .*/python[^/]*$|\\1|p'"
    " -e 's|.* /proc/\\([0-9]*\\)/exe -> .*/pypy[^/]*$|\\1|p'); do\n"
    "  found=$(tr '\\0' '\\n' <\"/proc/$pid/environ\" 2>/dev/null | grep -cxF \"$@\")\n"
    "  [ \"$found\" = \"$marks\" ] || continue\n"
    "  pids=\"$pids $pid\"\n"
    "done\n";

constexpr const char* dump_stacks =
    "t=$(command -v timeout); looks=0\n"
    "for pid in $pids; do\n"
    "  ${t:+$t 2} py-spy dump --nonblocking --pid \"$pid\" 2>/dev/null\n"
    "  looks=$((looks + 1)); [ $looks -lt 4 ] || break\n"
    "done\n"
    "exit 0\n";

/// SIGABRT reaches a stopped process only once SIGCONT lets it continue. `prlimit` prevents a core
/// file; without that program, the user's limit of core files holds.
constexpr const char* end_by_abort =
    "ends=\n"
    "for pid in $pids; do\n"
    "  tr '\\0' '\\n' <\"/proc/$pid/environ\" | grep -q '^PYTHONFAULTHANDLER=.' || continue\n"
    "  prlimit --pid \"$pid\" --core=0 2>/dev/null\n"
    "  kill -ABRT \"$pid\" && ends=\"$ends $pid\"\n"
    "  kill -CONT \"$pid\" 2>/dev/null\n"
    "done\n"
    "for look in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do\n"
    "  rest=\n"
    "  for pid in $ends; do kill -0 \"$pid\" 2>/dev/null && rest=1; done\n"
    "  [ -n \"$rest\" ] || exit 0\n"
    "  sleep 0.1\n"
    "done\n"
    "exit 0\n";

std::vector<std::string> shell_words(std::string script) {
  return {"/bin/sh", "-c", std::move(script)};
}

}  // namespace

std::vector<std::string> read_python_stacks(std::string_view text) {
  std::vector<std::string> lines;
  for (const auto line : core::split(text, '\n')) {
    if (core::trimmed(line).empty()) continue;
    if (lines.size() == max_stack_lines) break;
    lines.push_back("py-spy: " + core::printable(line.substr(0, max_stack_width)));
  }
  return lines;
}

async::Task<std::vector<std::string>> python_stacks(orchestrators::AttemptRunner& runner,
                                                    orchestrators::RunningProcess process) {
  auto words = shell_words(std::string("command -v py-spy >/dev/null || exit 1\n") + find_python +
                           dump_stacks);
  const auto output = co_await runner.ask(std::move(process), std::move(words));
  co_return output ? read_python_stacks(*output) : std::vector<std::string>{};
}

async::Task<> abort_python(orchestrators::AttemptRunner& runner,
                           orchestrators::RunningProcess process) {
  auto words = shell_words(std::string(find_python) + end_by_abort);
  try {
    co_await runner.ask(std::move(process), std::move(words));
  } catch (const std::exception& error) {
    core::log::info(std::string("cannot have Python print its stacks: ") + error.what());
  }
}

}  // namespace pipeline::engine
