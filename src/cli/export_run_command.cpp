#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "core/diagnostic.hpp"
#include "core/file.hpp"
#include "core/project.hpp"
#include "driver/named_artifact.hpp"
#include "driver/session.hpp"
#include "exports/openlineage.hpp"
#include "exports/provenance.hpp"
#include "exports/ro_crate.hpp"
#include "notify/webhook.hpp"

namespace pipeline::cli {
namespace {

namespace fs = std::filesystem;

/// Returns the text of a document; a step's failure may name a file whose name is not UTF-8.
std::string json_text(const nlohmann::json& document, int indent = -1) {
  return document.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Prints the path of the file or folder that was written, as JSON for programs.
void print_written(const Context& context, const fs::path& path) {
  context.print_json({{"written", path.string()}});
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
    print_written(context, file);
  else
    context.note(shown_path(file) + "\n");
}

/// Writes the pipeline's file, or its recorded steps if the file is gone, or is outside of the
/// project: the record of a run that somebody else has made may name any file. Returns the name.
std::string write_workflow(Context& context, store::RunStore& store, const store::RunRecord& run,
                           const fs::path& crate) {
  const fs::path file = run.file;
  std::error_code error;
  if (fs::is_regular_file(file, error) && !core::is_outside_project(file) &&
      file.filename().string().find_first_not_of(
          "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") ==
          std::string::npos) {
    core::write_file_atomically(crate / file.filename(), core::read_file(file));
    return file.filename().string();
  }
  context.note(
      "note: the crate has the recorded steps of the pipeline, because its file is "
      "missing, or outside of the project: " +
      run.file + "\n");
  const auto& of = run.same_as.empty() ? run.id : run.same_as;
  core::write_file_atomically(crate / "workflow.json",
                              store.key_values().find(store::declared_kind, of).value_or("{}"));
  return "workflow.json";
}

core::ExitCode write_crate(Context& context, store::RunStore& store, const store::RunRecord& run) {
  const auto& options = context.options();
  const auto& out = options.copy_to;
  const auto crate = fs::absolute(out.empty() ? fs::path("crate-" + run.id) : out);
  if (fs::exists(crate))
    throw core::InputError("'" + crate.string() + "' is there already",
                           "name another folder with -o, or remove it");
  auto& artifacts = context.artifacts();
  const auto facts = exports::facts_of(store, run, PIPELINE_VERSION);
  core::make_folders(crate);
  const exports::CrateOptions parts{
      write_workflow(context, store, run, crate), options.document.license,
      [&](const core::Digest& digest) { return artifacts.looks_whole(digest); }};
  for (const auto& step : facts.steps)
    for (const auto& output : step.record.outputs) {
      if (!parts.has_content(output.digest)) {
        context.note("note: " + step.record.name + "." + output.name +
                     " is not in the crate: its content is not on this machine\n");
        continue;
      }
      auto path = exports::crate_path(step.record, output);
      if (path.ends_with('/')) path.pop_back();
      core::make_folders((crate / path).parent_path());
      artifacts.copy_out(output.digest, crate / path);
    }
  core::write_file_atomically(crate / "ro-crate-metadata.json",
                              json_text(exports::ro_crate(facts, parts), 2) + "\n");
  if (options.json)
    print_written(context, crate);
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
    context.print(std::to_string(events.size()) + " events sent\n");
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
  if (format == "ro-crate") return write_crate(context, store, run);
  if (format == "slsa") {
    const auto artifact = driver::output_of_run(store, run, options.step);
    const auto made = exports::facts_of_maker(store, artifact, PIPELINE_VERSION);
    if (!made)
      throw core::InputError("no step in this state folder made '" + options.step + "'",
                             "another machine made it: export it there");
    write_out(context, json_text(exports::artifact_provenance(*made, artifact), 2) + "\n");
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
