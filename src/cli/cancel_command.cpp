#include <poll.h>
extern "C" {  // glibc 2.36 forgot to say so itself
#include <sys/pidfd.h>
}

#include <cerrno>
#include <csignal>

#include "cli/commands.hpp"
#include "cli/session.hpp"
#include "core/diagnostic.hpp"
#include "core/file.hpp"

namespace pipeline::cli {
namespace {

void send(const Descriptor& process, int signal, const store::RunRecord& run) {
  if (::pidfd_send_signal(process.get(), signal, nullptr, 0) != 0 && errno != ESRCH)
    throw system_error("cannot stop process " + std::to_string(run.driver.pid) + ", which makes run " + run.id, errno);
}

}  // namespace

ExitCode cancel_command(Context& context) {
  auto& runs = context.existing_runs();
  auto run = context.find_run(runs);
  if (run.status != RunStatus::running) throw InputError("run " + run.id + " has already ended: " + std::string(to_string(run.status)));

  // The descriptor is opened before the check, so that it cannot be another process that got the same number since.
  const Descriptor process(::pidfd_open(static_cast<pid_t>(run.driver.pid), 0));
  std::string how = "its process was gone; what it had left has been removed";
  if (process && run.driver.alive()) {
    send(process, SIGINT, run);
    if (context.options().now) send(process, SIGTERM, run);  // Another signal: two of the same might arrive as one.
    context.note("run " + run.id + " is stopping" + (context.options().now ? "" : "; `--now` kills its steps at once"));
    pollfd ended{process.get(), POLLIN, 0};
    while (::poll(&ended, 1, -1) < 0 && errno == EINTR) {}
    how = "stopped";
  }
  bury_dead_runs(context, runs);
  if (const auto now = runs.find_run(run.id)) run = *now;
  if (context.options().json) {
    context.print_json(nlohmann::json{{"run", run.id}, {"status", to_string(run.status)}});
  } else {
    context.print("run " + run.id + ": " + std::string(to_string(run.status)) + " (" + how + ")\n");
  }
  return ExitCode::ok;
}

}  // namespace pipeline::cli
