#include "cli/published_artifacts.hpp"

#include "cli/run_records.hpp"
#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/identifier.hpp"
#include "core/quantity.hpp"
#include "engine/clock.hpp"
#include "store/published.hpp"

namespace pipeline::cli {
namespace {

using nlohmann::json;

void list_versions(Context& context, const store::PublishedName& name) {
  const auto current = name.promoted.back();
  json versions = json::array();
  Table table;
  table.add({"VERSION", "", "PUBLISHED", "MADE BY", "FILE", "SIZE", "PATH"});
  for (auto version = name.versions.rbegin(); version != name.versions.rend(); ++version) {
    const auto& output = version->output;
    const auto path = context.artifacts().path(output.digest);
    versions.push_back({{"version", version->version},
                        {"current", version->version == current},
                        {"published", core::format_time(version->time)},
                        {"run", version->run},
                        {"output", version->step + "." + output.name},
                        {"file_name", output.file_name},
                        {"digest", output.digest.hex()},
                        {"bytes", output.bytes},
                        {"path", path.string()}});
    table.add({name.name + "@" + std::to_string(version->version),
               version->version == current ? "current" : "", core::format_time(version->time),
               version->run + " " + version->step + "." + output.name,
               output.file_name + (output.is_directory ? "/" : ""),
               core::format_bytes(output.bytes), shown_path(path)});
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

/// Returns the record of a name, and the version that follows `@`; 0: the current one.
std::pair<store::PublishedName, unsigned> named(store::Published& published,
                                                const std::string& text) {
  const auto wanted = store::PublishedReference::parse(text);
  const auto name = wanted ? wanted->name : text.substr(0, text.find('@'));
  auto found = published.of(name);
  if (found.versions.empty())
    throw core::InputError("nothing is published as '" + core::printable(name) + "'",
                           core::did_you_mean(name, published.names()));
  if (!wanted || (wanted->version != 0 && !found.find(wanted->version)))
    throw core::InputError("'" + name + "' has no version '" +
                           core::printable(text.substr(name.size() + 1)) + "'");
  return {std::move(found), wanted->version};
}

}  // namespace

core::ExitCode published_command(Context& context, store::RunStore& runs) {
  const auto& options = context.options().inspect;
  store::Published published(runs);
  const auto [name, version] = named(published, options.name);
  if (options.promote) {
    published.promote(name.name, options.promote);
    say_current(context, published.of(name.name));
  } else if (options.demote) {
    published.demote(name.name);
    say_current(context, published.of(name.name));
  } else if (!options.copy_to.empty()) {
    const auto& output = name.find(version)->output;
    auto destination = std::filesystem::absolute(options.copy_to);
    std::error_code error;
    if (std::filesystem::is_directory(destination, error)) destination /= output.file_name;
    context.artifacts().copy_out(output.digest, destination);
    if (context.options().json)
      context.print_json({{"copied_to", destination.string()}});
    else
      context.print(options.name + " -> " + shown_path(destination) + "\n");
  } else {
    list_versions(context, name);
  }
  return core::ExitCode::ok;
}

void publish_output(Context& context, store::RunStore& runs, const std::string& name,
                    const store::StepRecord& step, const store::OutputRecord& output) {
  if (!core::is_name(name))
    throw core::InputError("'" + core::printable(name) + "' cannot be an artifact's name",
                           "a name has letters, digits, `.`, `_` and `-`");
  store::Published published(runs);
  const auto& run = step.reused_from.empty() ? step.run : step.reused_from;
  const auto version = published.publish(name, run, step.name, output, engine::wall_now());
  published.promote(name, version);
  say_current(context, published.of(name));
}

}  // namespace pipeline::cli
