#include "orchestrators/local/gpu_preflight.hpp"

#include "async/deadline.hpp"
#include "orchestrators/preflight.hpp"
#include "orchestrators/stopped.hpp"

namespace pipeline::orchestrators::local {
namespace {

/// Returns whether the log has the table of this node's GPUs without this process: the node's first
/// process writes it, and not again after a restart of all processes.
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
    report.code = 127;  // A shell's exit code for a program that is not found.
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
    report.code = end.start_error ? 126 : end.exited ? end.code : 128 + end.code;
    if (report.code != 0 || !is_shown_by_another(attempt)) write_preflight(attempt.io.log, *text);
    if (deadline.expired()) co_return preflight_hangs(preflight_timeout);
    if (end.stopped) co_return was_stopped();
    if (report.code != 0) break;
  }
  co_return preflight_failure(report, attempt.gpus, GpuVisibility::all);
}

}  // namespace pipeline::orchestrators::local
