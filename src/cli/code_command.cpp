// `pipe code`: lists the code files that an attempt of a step ran, or copies them out.
#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "core/quantity.hpp"
#include "driver/recorded_attempt.hpp"

namespace pipeline::cli {

namespace fs = std::filesystem;

core::ExitCode code_command(Context& context) {
  const auto& options = context.options();
  auto& store = context.existing_store();
  const auto found =
      driver::recorded_attempt(store, context.find_run(store), options.step, options.attempt);
  const auto digest = code_of(context, found);
  const auto stored = context.artifacts().path(digest);
  nlohmann::json document{{"run", found.run.id},
                          {"step", found.step.name},
                          {"attempt", found.attempt.number},
                          {"digest", digest.hex()}};
  if (const auto& target = options.copy_to; !target.empty()) {
    context.artifacts().copy_out(digest, fs::absolute(target));
    document["copied_to"] = fs::absolute(target).string();
    if (!options.json)
      context.print("the code of '" + found.step.name + "' in run " + found.run.id + " -> " +
                    shown_path(target) + "\n");
  } else {
    Table table;
    table.add({"FILE", "SIZE"});
    document["files"] = nlohmann::json::array();
    for (const auto& [file, path] : driver::code_files(stored)) {
      const auto bytes = fs::file_size(path);
      document["files"].push_back({{"file", file}, {"bytes", bytes}});
      table.add({file, core::format_bytes(bytes)});
    }
    if (!options.json && document["files"].empty())
      context.print("'" + found.step.name + "' ran no code files: its command names none\n");
    else if (!options.json)
      context.print(table.render(context.paint()));
  }
  if (options.json) context.print_json(document);
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
