// `pipe cancel`: stops a run in progress.
#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "driver/cancellation.hpp"

namespace pipeline::cli {

core::ExitCode cancel_command(Context& context) {
  const auto& options = context.options();
  const auto [run, how] = driver::cancel_run(context, options.run, options.cancel);
  const std::string status(to_string(run.status));
  if (options.json)
    context.print_json({{"run", run.id}, {"status", status}});
  else
    context.print("run " + run.id + ": " + status + " (" + how + ")\n");
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
