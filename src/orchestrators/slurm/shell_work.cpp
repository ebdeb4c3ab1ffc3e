#include "orchestrators/slurm/shell_work.hpp"

#include <deque>

#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/identifier.hpp"
#include "core/lines.hpp"
#include "orchestrators/processes/virtual_environment.hpp"

namespace pipeline::orchestrators::slurm {

async::Task<WorkEnd> run_work(ShellWork work, processes::ProcessReaper& reaper,
                              core::CancelSource& cancel) {
  constexpr std::size_t max_lines = 10;
  WorkEnd result;
  processes::ProcessOptions process;
  process.environment = processes::caller_variables();
  const auto program = processes::find_program(work.program, process.environment["PATH"]);
  result.is_missing = program.empty();
  if (result.is_missing) co_return result;
  for (auto& [name, value] : work.variables) process.environment[name] = value;
  // No file grows beyond 256 GiB; `ulimit -f` counts blocks of 512 bytes.
  process.arguments = {
      "sh", "-c",
      "ulimit -f 536870912; exec " + core::shell_quote(program.string()) + " " + work.arguments};
  process.program = "/bin/sh";
  process.folder = work.folder;
  std::deque<std::string> last;
  core::Lines lines;
  const processes::OutputCallback on_output = [&](Stream, std::string_view bytes) {
    if (work.on_output) work.on_output(bytes);
    lines.feed(bytes, [&](std::string_view line) {
      last.emplace_back(line);
      if (last.size() > max_lines) last.pop_front();
    });
  };
  const auto end = co_await processes::run_process(process, reaper, cancel, on_output);
  if (cancel.level() != core::StopLevel::none)
    throw core::EnvironmentError("stopped while an image was made for the nodes");
  result.succeeded = end.exited && end.code == 0;
  result.code = end.code;
  std::string output_end;
  for (const auto& line : last) output_end += (output_end.empty() ? ": " : "; ") + line;
  result.output_end = core::printable(output_end);
  co_return result;
}

}  // namespace pipeline::orchestrators::slurm
