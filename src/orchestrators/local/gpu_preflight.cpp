#include "orchestrators/local/gpu_preflight.hpp"

#include "async/deadline.hpp"
#include "orchestrators/preflight.hpp"
#include "orchestrators/stopped.hpp"

namespace pipeline::orchestrators::local {
namespace {

/// Exit codes that a shell would give: for a program that is not found, for one that cannot be
/// executed, and, with the signal's number added, for one that a signal has ended.
constexpr int not_found = 127, not_executable = 126, by_signal = 128;

/// Returns true if another process writes the table of this node's GPUs to the log, or has written
/// it: the node's first process does, before the first restart of the processes.
bool is_shown_by_another(const Attempt& attempt) {
  return attempt.process &&
         (attempt.process->local_rank > 0 || attempt.process->addresses->restarts > 0);
}

}  // namespace

async::Task<std::optional<Failure>> look_at_gpus(const Attempt& attempt,
                                                 const StringMap& environment,
                                                 processes::ProcessReaper& reaper) {
  SmiReport report;
  processes::ProcessOptions smi;
  smi.environment = environment;
  smi.folder = "/";
  const auto path = environment.find("PATH");
  smi.program = processes::find_program("nvidia-smi",
                                        path == environment.end() ? std::string() : path->second);
  if (smi.program.empty()) {
    report.code = not_found;
    co_return preflight_failure(report, attempt.gpus, GpuVisibility::all);
  }
  async::Deadline deadline(co_await asio::this_coro::executor, attempt.io.cancel, preflight_timeout,
                           core::StopLevel::immediate);
  for (auto* text : {&report.table, &report.list}) {
    smi.arguments = {"nvidia-smi"};
    if (text == &report.list) smi.arguments.emplace_back("-L");
    const processes::OutputCallback keep = [text](Stream, std::string_view bytes) {
      *text += bytes;
    };
    const auto end = co_await processes::run_process(smi, reaper, deadline.source(), keep);
    report.code = end.start_error ? not_executable : end.exited ? end.code : by_signal + end.code;
    if (report.code != 0 || !is_shown_by_another(attempt)) write_preflight(attempt.io.log, *text);
    if (deadline.expired()) co_return preflight_hangs(preflight_timeout);
    if (end.stopped) co_return was_stopped();
    if (report.code != 0) break;
  }
  co_return preflight_failure(report, attempt.gpus, GpuVisibility::all);
}

}  // namespace pipeline::orchestrators::local
