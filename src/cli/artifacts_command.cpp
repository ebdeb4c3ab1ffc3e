// `pipe artifacts`: lists the outputs of a run's steps, and copies or publishes them.
#include <algorithm>
#include <filesystem>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/published_artifacts.hpp"
#include "cli/run_records.hpp"
#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"
#include "core/quantity.hpp"
#include "driver/failed_outputs.hpp"
#include "driver/named_outputs.hpp"
#include "driver/output_links.hpp"
#include "driver/session.hpp"

namespace pipeline::cli {
namespace {

using nlohmann::json;

/// Handles `--copy -`: writes the content of one output to standard output.
void print_output(Context& context, remote_cache::RunOutputs& outputs,
                  const std::vector<driver::NamedOutput>& found) {
  const bool is_json = context.options().json;
  const auto& first = found.front();
  if (found.size() > 1 || first.output.is_directory || is_json)
    throw core::InputError(
        "`--copy -` writes the content of one file to standard output, and nothing else",
        is_json ? "leave out `--output json`"
                : "name a file: STEP.OUTPUT; folders and several files need a folder's name");
  outputs.fetch(first.step, first.output);
  context.print_file(context.artifacts().path(first.output.digest));
}

/// Returns the file name of a copy. Several outputs may have the same file name, so these are
/// copied under their full names.
std::string name_of_copy(const driver::NamedOutput& output, bool is_one_of_many) {
  const auto& file_name = output.output.file_name;
  return is_one_of_many ? output.name + std::filesystem::path(file_name).extension().string()
                        : file_name;
}

/// Returns the path that `--copy` names, and whether it is a folder for the copies, which is made.
std::pair<std::filesystem::path, bool> copy_target(const Context& context, std::size_t copies) {
  const auto& given = context.options().copy_to;
  auto target = std::filesystem::absolute(given);
  std::error_code error;
  const bool is_folder =
      copies > 1 || given.string().ends_with('/') || std::filesystem::is_directory(target, error);
  if (is_folder) core::make_folders(target);
  return {std::move(target), is_folder};
}

/// Handles `--copy DEST`.
void copy_outputs(Context& context, remote_cache::RunOutputs& outputs, const std::string& run,
                  const std::vector<driver::NamedOutput>& found) {
  const auto [target, into_folder] = copy_target(context, found.size());
  json copied = json::array();
  for (const auto& output : found) {
    const auto file_name = name_of_copy(output, found.size() > 1);
    if (!core::is_name(file_name))
      throw core::EnvironmentError("the record of " + run + " has an invalid file name: '" +
                                   core::printable(file_name) + "'");
    const auto destination = into_folder ? target / file_name : target;
    outputs.fetch(output.step, output.output);
    context.artifacts().copy_out(output.output.digest, destination);
    copied.push_back({{"output", output.name}, {"copied_to", destination.string()}});
    if (!context.options().json)
      context.print(output.name + " -> " + shown_path(destination) + "\n");
  }
  if (context.options().json) context.print_json({{"run", run}, {"copied", copied}});
}

/// Handles `--copy` for the kept outputs of a failed step.
void copy_failed(Context& context, const std::string& run,
                 const std::vector<driver::FailedOutput>& failed) {
  const auto& given = context.options().copy_to;
  if (given == "-") {
    std::error_code error;
    const auto status = std::filesystem::symlink_status(failed.front().path, error);
    if (failed.size() > 1 || !std::filesystem::is_regular_file(status))
      throw core::InputError("`--copy -` writes the content of one file to standard output",
                             "name a file: STEP.FILE");
    return context.print_file(failed.front().path);
  }
  const auto [target, into_folder] = copy_target(context, failed.size());
  json copied = json::array();
  for (const auto& output : failed) {
    const auto name = failed.size() > 1 ? output.name() : output.path.filename().string();
    const auto destination = into_folder ? target / name : target;
    const auto left_out = copy_failed_output(output, destination);
    for (const auto& path : left_out)
      context.note("note: " + core::printable(path.string()) +
                   " is left out: it is a socket, a pipe or a device");
    if (std::ranges::find(left_out, output.path) != left_out.end()) continue;
    copied.push_back({{"output", output.name()},
                      {"copied_to", destination.string()},
                      {"failed_attempt", output.attempt}});
    if (!context.options().json)
      context.print(core::printable(output.name()) + " of failed attempt " +
                    std::to_string(output.attempt) + ", which may be incomplete -> " +
                    core::printable(shown_path(destination)) + "\n");
  }
  if (context.options().json) context.print_json({{"run", run}, {"copied", copied}});
}

void list_outputs(Context& context, const remote_cache::RunOutputs& outputs, const std::string& run,
                  const std::vector<driver::NamedOutput>& found,
                  const std::vector<driver::FailedOutput>& failed) {
  if (context.options().json) {
    json list = json::array();
    for (const auto& [name, step, output] : found)
      list.push_back(output_json(context, outputs, step.name, output));
    for (const auto& output : failed)
      list.push_back({{"output", output.name()},
                      {"file_name", output.path.filename().string()},
                      {"failed_attempt", output.attempt},
                      {"path", output.path.string()}});
    context.print_json({{"run", run}, {"artifacts", list}});
    return;
  }
  Table table;
  table.add({"ARTIFACT", "FILE", "SIZE", "PATH"});
  for (const auto& [name, step, output] : found) {
    table.add({name, output.file_name + (output.is_directory ? "/" : ""),
               core::format_bytes(output.bytes),
               output.temp && !context.artifacts().is_known(output.digest) ? "temporary, removed"
               : outputs.is_here(output)
                   ? shown_path(driver::link_to_output(context.artifacts(), step.name, output))
                   : outputs.location(output)});
  }
  for (const auto& output : failed)
    table.add({core::printable(output.name()), core::printable(output.path.filename().string()),
               "attempt " + std::to_string(output.attempt) + " failed",
               core::printable(shown_path(output.path))});
  context.print(table.render(context.paint()));
}

}  // namespace

core::ExitCode artifacts_command(Context& context) {
  if (!context.options().artifacts.name.empty()) return published_command(context);
  auto& store = context.existing_store();
  driver::Drivers drivers(context.driver_context(), store);
  const auto run = driver::find_run(context, context.options().run, drivers, store);
  const auto& wanted = context.options().step;
  const auto& copy_to = context.options().copy_to;
  const auto steps = store.runs().steps(run.id);
  const auto failed = driver::failed_outputs(store, run.id, steps, wanted);
  const auto found = wanted.empty() || failed.empty()
                         ? driver::outputs_named(store, run, steps, wanted)
                         : std::vector<driver::NamedOutput>();
  auto outputs = outputs_of(context, store, run);
  if (!copy_to.empty() && found.empty() && !failed.empty()) {
    copy_failed(context, run.id, failed);
    return core::ExitCode::ok;
  }
  if (!copy_to.empty() && found.empty())
    throw core::InputError(wanted.empty() ? "run " + run.id + " has no artifacts"
                                          : "'" + wanted + "' has no artifacts in run " + run.id);
  if (const auto& name = context.options().artifacts.publish_as; !name.empty()) {
    if (found.size() != 1)
      throw core::InputError("`--publish` takes one output: name it as STEP.OUTPUT");
    outputs.fetch(found[0].step, found[0].output);
    publish_output(context, store, name, found[0].step, found[0].output);
  } else if (copy_to.empty())
    list_outputs(context, outputs, run.id, found, failed);
  else if (copy_to == "-")
    print_output(context, outputs, found);
  else
    copy_outputs(context, outputs, run.id, found);
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
