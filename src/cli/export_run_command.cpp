// `pipe export` of a run: RO-Crate, OpenLineage events, or SLSA provenance of an artifact.
#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "core/diagnostic.hpp"
#include "core/file.hpp"
#include "driver/named_artifact.hpp"
#include "driver/session.hpp"
#include "exports/crate_folder.hpp"
#include "exports/openlineage.hpp"
#include "exports/provenance.hpp"
#include "notify/webhook.hpp"

namespace pipeline::cli {
namespace {

namespace fs = std::filesystem;

/// Returns the text of a document; a step's failure may name a file whose name is not UTF-8.
std::string json_text(const nlohmann::json& document, int indent = -1) {
  return document.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Writes the text to the file of `--out`, or to standard output.
void write_out(Context& context, const std::string& text) {
  const auto& out = context.options().copy_to;
  if (out.empty() || out == "-") {
    context.write(text);
    return;
  }
  const auto file = fs::absolute(out);
  core::write_named_file(file, text);
  if (context.options().json)
    context.print_json({{"written", file.string()}});
  else
    context.note(shown_path(file) + "\n");
}

core::ExitCode export_crate(Context& context, store::RunStore& store, const store::RunRecord& run) {
  const auto& options = context.options();
  const auto& out = options.copy_to;
  const auto crate = fs::absolute(out.empty() ? fs::path("crate-" + run.id) : out);
  exports::write_crate(store, context.artifacts(), exports::facts_of(store, run, PIPELINE_VERSION),
                       {crate, options.document.license, context.notes()});
  if (options.json)
    context.print_json({{"written", crate.string()}});
  else
    context.print(shown_path(crate) + "\n");
  return core::ExitCode::ok;
}

core::ExitCode send_events(Context& context, const std::vector<nlohmann::json>& events) {
  const auto address = context.options().copy_to.string();
  net::HttpClient http(context.loop());
  core::CancelSource never;  // Ctrl-C ends the process.
  for (const auto& event : events)
    if (const auto reason = context.await(notify::deliver(http, address, json_text(event), never));
        !reason.empty())
      throw core::EnvironmentError("cannot send the events to " + notify::shown_address(address) +
                                   ": " + reason);
  if (context.options().json)
    context.print_json({{"sent", events.size()}});
  else
    context.print(counted(events.size(), "event") + " sent\n");
  return core::ExitCode::ok;
}

}  // namespace

core::ExitCode export_run_command(Context& context) {
  const auto& options = context.options();
  auto& store = context.existing_store();
  driver::Drivers drivers(context.driver_context(), store);
  const auto run = driver::find_run(context, context.options().run, drivers, store);
  const auto& format = options.document.format;
  if ((format == "slsa") == options.step.empty())
    throw core::InputError(
        format == "slsa" ? "provenance is for one artifact: name it"
                         : "'" + options.step + "' is an artifact, and " + format + " is for a run",
        options.name + " export " + run.id +
            (format == "slsa" ? " STEP.OUTPUT --format slsa" : " --format " + format));
  if (run.status == RunStatus::running)
    throw core::InputError("run " + run.id + " is still running");
  if (format == "ro-crate") return export_crate(context, store, run);
  if (format == "slsa") {
    const auto artifact = driver::output_of_run(store, run, options.step);
    const auto made = exports::facts_of_maker(store, artifact.digest, artifact.step, artifact.run,
                                              PIPELINE_VERSION);
    if (!made)
      throw core::InputError("no step in this state folder made '" + options.step + "'",
                             "if another machine made it, export it there; `pipe clean` may have "
                             "removed the run that made it");
    write_out(context, json_text(exports::artifact_provenance(*made, artifact.digest), 2) + "\n");
    return core::ExitCode::ok;
  }
  const auto events = exports::openlineage_events(exports::facts_of(store, run, PIPELINE_VERSION));
  const auto out = options.copy_to.string();
  if (out.starts_with("https://") || out.starts_with("http://"))
    return send_events(context, events);
  std::string lines;
  for (const auto& event : events) lines += json_text(event) + "\n";
  write_out(context, lines);
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
