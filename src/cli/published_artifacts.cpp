#include "cli/published_artifacts.hpp"

#include <functional>
#include <optional>

#include "cli/run_records.hpp"
#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"
#include "core/quantity.hpp"
#include "driver/output_links.hpp"
#include "engine/clock.hpp"
#include "remote_cache/remote_names.hpp"
#include "remote_cache/run_outputs.hpp"
#include "store/published.hpp"

namespace pipeline::cli {
namespace {

using nlohmann::json;

/// The published names of the options' remote store, or else of the state folder.
class Names {
 public:
  Names(Context& context, store::RunStore& store)
      : context_(context),
        here_(store.published()),
        outputs_(context.loop(), context.artifacts(), store.folder(),
                 context.options().remote_store) {
    if (!context.options().remote_store.is_given()) return;
    remote_.emplace(context.loop(), context.options().remote_store);
    there_.emplace(*remote_, context.artifacts());
  }

  store::PublishedName of(const std::string& name) {
    return there_ ? context_.await(there_->find(name)) : here_.of(name);
  }
  std::vector<std::string> all() {
    return there_ ? context_.await(there_->names()) : here_.names();
  }
  void change(const std::string& name, const remote_cache::RemoteNames::Edit& edit) {
    there_ ? context_.await(there_->change(name, edit)) : here_.change(name, edit);
  }
  void publish(const std::string& name, store::PublishedVersion made) {
    if (there_) context_.await(there_->send(made));
    change(name, [&](store::PublishedName& all) {
      const auto version = all.publish(made);
      all.promote(version);
      return version;
    });
  }
  remote_cache::RunOutputs& outputs() { return outputs_; }

 private:
  Context& context_;
  store::Published& here_;
  remote_cache::RunOutputs outputs_;
  std::optional<blobs::RemoteArtifacts> remote_;
  std::optional<remote_cache::RemoteNames> there_;
};

void list_versions(Context& context, Names& names, const store::PublishedName& name) {
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

void say_current(Context& context, const store::PublishedName& name) {
  const auto* current = name.find();
  if (context.options().json)
    context.print_json({{"name", name.name}, {"current", current->version}});
  else
    context.print(name.name + " is version " + std::to_string(current->version) + ", of run " +
                  current->run + "\n");
}

/// Handles `--copy DEST`; `-` is standard output.
void copy_version(Context& context, Names& names, const store::PublishedVersion& version) {
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

/// Returns the record of a name, and the version that follows `@`; 0: the current one.
std::pair<store::PublishedName, unsigned> named(Names& names, const std::string& text) {
  const auto wanted = store::PublishedReference::parse(text);
  const auto name = wanted ? wanted->name : text.substr(0, text.find('@'));
  auto found = names.of(name);
  if (found.versions.empty())
    throw core::InputError("nothing is published as '" + core::printable(name) + "'",
                           core::did_you_mean(name, names.all()));
  if (!wanted || (wanted->version != 0 && !found.find(wanted->version)))
    throw core::InputError("'" + name + "' has no version '" +
                           core::printable(text.substr(name.size() + 1)) + "'");
  return {std::move(found), wanted->version};
}

}  // namespace

core::ExitCode published_command(Context& given) {
  // A remote store's names need no state folder.
  std::optional<core::TemporaryFolder> no_state;
  auto chosen = given.options();
  if (chosen.remote_store.is_given() && !given.existing_state())
    chosen.state = no_state.emplace().path();
  Context context(std::move(chosen));
  Names names(context, context.store(context.required_state()));
  const auto& options = context.options().artifacts;
  const auto [name, version] = named(names, options.name);
  if (options.promote) {
    names.change(name.name, [&](store::PublishedName& all) {
      all.promote(options.promote);
      return options.promote;
    });
    say_current(context, names.of(name.name));
  } else if (options.demote) {
    names.change(name.name, [](store::PublishedName& all) { return all.demote(); });
    say_current(context, names.of(name.name));
  } else if (!context.options().copy_to.empty()) {
    copy_version(context, names, *name.find(version));
  } else {
    list_versions(context, names, name);
  }
  return core::ExitCode::ok;
}

void publish_output(Context& context, store::RunStore& store, const std::string& name,
                    const store::StepRecord& step, const store::OutputRecord& output) {
  if (!core::is_name(name))
    throw core::InputError("'" + core::printable(name) + "' cannot be an artifact's name",
                           "a name has letters, digits, `.`, `_` and `-`");
  Names names(context, store);
  const auto& run = step.reused_from.empty() ? step.run : step.reused_from;
  names.publish(name,
                {.run = run, .step = step.name, .output = output, .time = engine::wall_now()});
  say_current(context, names.of(name));
}

}  // namespace pipeline::cli
