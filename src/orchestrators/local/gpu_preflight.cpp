#include "orchestrators/local/gpu_preflight.hpp"

#include <memory>

#include "orchestrators/preflight.hpp"

namespace pipeline::local {
namespace {

/// Stops what is in progress when its time is up.
class Patience {
 public:
  Patience(const asio::any_io_executor& executor, CancelSource& attempt)
      : timer_(executor, longest_preflight), from_attempt_(attempt, [this](StopLevel level) { source_.stop(level); }) {
    timer_.async_wait([this, alive = std::weak_ptr<int>(alive_)](boost::system::error_code stopped) {
      if (stopped || alive.expired()) return;
      lost_ = true;
      source_.stop(StopLevel::immediate);
    });
  }
  CancelSource& source() { return source_; }
  bool lost() const { return lost_; }

 private:
  CancelSource source_;
  bool lost_ = false;
  std::shared_ptr<int> alive_ = std::make_shared<int>();  // shared with the timer's handler, which may run after this object is gone
  asio::steady_timer timer_;
  CancelSource::Listener from_attempt_;
};

}  // namespace

Task<std::optional<Failure>> look_at_gpus(const Attempt& attempt, const StringMap& environment, Guardian& guardian) {
  SmiReport report;
  ProcessOptions smi;
  smi.environment = environment;
  smi.folder = "/";
  const auto path = environment.find("PATH");
  smi.program = find_program("nvidia-smi", path == environment.end() ? std::string() : path->second);
  if (smi.program.empty()) {
    report.code = 127;
    co_return preflight_failure(report, attempt.gpus, Sight::all);
  }
  Patience patience(co_await asio::this_coro::executor, attempt.cancel);
  for (auto* text : {&report.table, &report.list}) {
    smi.arguments = {"nvidia-smi"};
    if (text == &report.list) smi.arguments.emplace_back("-L");
    const OutputCallback keep = [text](Stream, std::string_view bytes) { *text += bytes; };
    const auto end = co_await run_process(smi, guardian, patience.source(), keep);
    write_preflight(attempt.log, *text);
    if (patience.lost()) co_return preflight_hangs(longest_preflight);
    if (end.stopped) co_return Failure{FailureKind::cancelled, "was stopped", {}, {}};
    report.code = end.start_error ? 126 : end.exited ? end.code : 128 + end.code;
    if (report.code != 0) break;
  }
  co_return preflight_failure(report, attempt.gpus, Sight::all);
}

}  // namespace pipeline::local
