// `pipe run`, `pipe resume`, and `pipe __drive`, the driver in a cluster.
#include "cli/commands.hpp"
#include "cli/display.hpp"
#include "cli/report_error.hpp"
#include "cli/summary.hpp"
#include "core/diagnostic.hpp"
#include "core/utf8.hpp"
#include "driver/cluster_driver.hpp"
#include "driver/detached_start.hpp"
#include "driver/error_report.hpp"
#include "driver/resume.hpp"
#include "driver/storage.hpp"

namespace pipeline::cli {
namespace {

/// Throws InputError for names that are not UTF-8, because runs are recorded as JSON.
void check_encoding(const Context& context) {
  const auto& options = context.options();
  std::vector<std::string> names{context.pipeline_file().string(), options.template_dir.string(),
                                 options.step};
  for (const auto& [field, value] : options.connection) names.push_back(value);
  names.insert(names.end(), options.force.begin(), options.force.end());
  names.insert(names.end(), options.from.begin(), options.from.end());
  for (const auto& name : names)
    if (!core::is_utf8(name))
      throw core::InputError("'" + core::printable(name) + "' is not UTF-8",
                             "rename the file or the folder, or write the name in UTF-8");
}

/// Returns the commands to follow the run, one a line.
std::string commands_for(const Context& context, const std::string& run,
                         const std::filesystem::path& state) {
  const auto line = [&](const char* words, const std::string& more = {}) {
    return "  " + context.options().name + " " + words + " " + run + more +
           context.state_option(state) + "\n";
  };
  return line("attach") + line("logs", " -f") + line("cancel");
}

void print_detached(const Context& context, const std::string& run, RunStatus status,
                    nlohmann::json driver) {
  context.write(nlohmann::json{{"event", "detached"},
                               {"run", run},
                               {"status", to_string(status)},
                               {"driver", std::move(driver)}}
                    .dump() +
                "\n");
}

core::ExitCode show_detached(const Context& context, const driver::DetachedRun& started) {
  const auto& lease = started.lease;
  if (context.options().json) {
    print_detached(context, started.run, started.status,
                   {{"job", lease.name},
                    {"namespace", lease.name_space},
                    {"context", lease.context},
                    {"holder", started.holder}});
    return core::ExitCode::ok;
  }
  std::string text = "run " + started.run + " is driven by the Job " + lease.name +
                     " of the namespace " + lease.name_space;
  if (started.status != RunStatus::running)
    text += ", and has ended: " + std::string(to_string(started.status));
  else if (started.holder.empty())
    text +=
        ", which has not started yet" + (started.waits_for.empty() ? "" : ": " + started.waits_for);
  context.print(text + "\n" + commands_for(context, started.run, started.state));
  return core::ExitCode::ok;
}

/// Starts a run whose driver is in the cluster.
core::ExitCode detach(Context& context) {
  RunDisplay display(context);
  try {
    return show_detached(context, driver::start_detached(context, display));
  } catch (const driver::Interrupted&) {
    return core::ExitCode::interrupted;
  }
}

core::ExitCode show_background(const Context& context, const driver::BackgroundRun& started) {
  if (context.options().json)
    print_detached(context, started.run, RunStatus::running, {{"process", started.process}});
  else
    context.print("run " + started.run + " continues in the background, driven by process " +
                  std::to_string(started.process) + "\n" +
                  commands_for(context, started.run, started.state));
  return core::ExitCode::ok;
}

/// A function that drives a new or a resumed run until the run's end.
/// @param background null: the run is shown until it ends
using Drive = driver::RunEnd (*)(Context& context, RunDisplay& display,
                                 driver::Background* background);

driver::RunEnd drive_new(Context& context, RunDisplay& display, driver::Background* background) {
  return driver::RunDriver(
             context, {.background = background, .reports_reused_steps = context.options().json},
             display)
      .run();
}

driver::RunEnd drive_resumed(Context& context, RunDisplay& display,
                             driver::Background* background) {
  return driver::resume_run(context, context.options().run, display, background);
}

/// Drives and shows a run, and returns its exit code.
core::ExitCode drive(Context& context, Drive drive_run, driver::Background* background) {
  RunDisplay display(context, background);
  const auto end = drive_run(context, display, background);
  if (!background) show_summary(context, display.model(), end);
  if (end.outcome.succeeded > 0) driver::warn_of_storage(context, end.state);
  return end.exit_code;
}

core::ExitCode drive_in_background(Context& context, Drive drive_run) {
  const auto started = driver::start_in_background([&](driver::Background& background) {
    try {
      return drive(context, drive_run, &background);
    } catch (...) {
      const auto error = std::current_exception();
      background.add(driver::error_json(error));
      return write_error(error, context.options().json && !background.has_left());
    }
  });
  if (const auto* code = std::get_if<core::ExitCode>(&started)) return *code;
  return show_background(context, std::get<driver::BackgroundRun>(started));
}

}  // namespace

core::ExitCode run_command(Context& context) {
  const auto& options = context.options();
  check_encoding(context);
  if (!options.detach) return drive(context, drive_new, nullptr);
  if (orchestrators::traits_of(options.orchestrator).can_detach) return detach(context);
  return drive_in_background(context, drive_new);
}

core::ExitCode resume_command(Context& context) {
  if (context.options().detach) return drive_in_background(context, drive_resumed);
  return drive(context, drive_resumed, nullptr);
}

core::ExitCode drive_command(Context& context) {
  RunDisplay display(context, SignalHandling::none);
  driver::drive_in_cluster(context, context.options().run, display);
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
