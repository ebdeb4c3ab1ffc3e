#include "cli/published_artifacts.hpp"

#include <optional>

#include "core/file.hpp"
#include "core/quantity.hpp"
#include "driver/output_links.hpp"
#include "driver/published_names.hpp"
#include "store/published.hpp"

namespace pipeline::cli {
namespace {

using nlohmann::json;

void list_versions(Context& context, driver::PublishedNames& names,
                   const store::PublishedName& name) {
  const auto current = name.promoted.back();
  json versions = json::array();
  Table table;
  table.add({"VERSION", "", "PUBLISHED", "MADE BY", "FILE", "SIZE", "PATH"});
  for (auto version = name.versions.rbegin(); version != name.versions.rend(); ++version) {
    const auto& output = version->output;
    const bool is_here = names.outputs().is_here(output);
    const auto place =
        is_here ? driver::link_to_output(context.artifacts(), version->step, output).string()
                : names.outputs().location(output);
    versions.push_back({{"version", version->version},
                        {"current", version->version == current},
                        {"published", core::format_time(version->time)},
                        {"run", version->run},
                        {"output", version->step + "." + output.name},
                        {"file_name", output.file_name},
                        {"digest", output.digest.hex()},
                        {"bytes", output.bytes},
                        {is_here ? "path" : "url", place}});
    table.add({name.name + "@" + std::to_string(version->version),
               version->version == current ? "current" : "", core::format_time(version->time),
               version->run + " " + version->step + "." + output.name,
               output.file_name + (output.is_directory ? "/" : ""),
               core::format_bytes(output.bytes), is_here ? shown_path(place) : place});
  }
  if (context.options().json)
    context.print_json({{"name", name.name}, {"versions", versions}});
  else
    context.print(table.render(context.paint()));
}

void print_current(Context& context, const store::PublishedName& name) {
  const auto* current = name.find();
  if (context.options().json)
    context.print_json({{"name", name.name}, {"current", current->version}});
  else
    context.print(name.name + " is version " + std::to_string(current->version) + ", of run " +
                  current->run + "\n");
}

/// Handles `--copy DEST`; `-` is standard output.
void copy_version(Context& context, driver::PublishedNames& names,
                  const store::PublishedVersion& version) {
  const auto& copy_to = context.options().copy_to;
  const auto& output = version.output;
  const bool is_json = context.options().json;
  if (copy_to == "-") {
    if (output.is_directory || is_json)
      throw core::InputError(
          "`--copy -` writes the content of one file to standard output, and nothing else",
          is_json ? "leave out `--output json`"
                  : "the artifact is a folder: name a folder for the copy");
    names.outputs().fetch(version);
    return context.print_file(context.artifacts().path(output.digest));
  }
  auto destination = std::filesystem::absolute(copy_to);
  std::error_code error;
  if (std::filesystem::is_directory(destination, error)) destination /= output.file_name;
  names.outputs().fetch(version);
  context.artifacts().copy_out(output.digest, destination);
  if (is_json)
    context.print_json({{"copied_to", destination.string()}});
  else
    context.print(context.options().artifacts.name + " -> " + shown_path(destination) + "\n");
}

}  // namespace

core::ExitCode published_command(Context& given) {
  // A remote store's names need no state folder.
  std::optional<core::TemporaryFolder> no_state;
  auto chosen = given.options();
  if (chosen.remote_store.is_given() && !given.existing_state())
    chosen.state = no_state.emplace().path();
  Context context(std::move(chosen));
  driver::PublishedNames names(context, context.store(context.required_state()));
  const auto& options = context.options().artifacts;
  const auto [name, version] = names.find(options.name);
  if (options.promote) {
    names.promote(name.name, options.promote);
    print_current(context, names.record_of(name.name));
  } else if (options.demote) {
    names.demote(name.name);
    print_current(context, names.record_of(name.name));
  } else if (!context.options().copy_to.empty()) {
    copy_version(context, names, *name.find(version));
  } else {
    list_versions(context, names, name);
  }
  return core::ExitCode::ok;
}

void publish_output(Context& context, store::RunStore& store, const std::string& name,
                    const store::StepRecord& step, const store::OutputRecord& output) {
  driver::PublishedNames names(context, store);
  names.publish(name, step, output);
  print_current(context, names.record_of(name));
}

}  // namespace pipeline::cli
