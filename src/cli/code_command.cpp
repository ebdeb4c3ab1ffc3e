#include <algorithm>
#include <vector>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/recorded_attempt.hpp"
#include "core/quantity.hpp"

namespace pipeline::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::vector<std::string> files_below(const fs::path& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (!entry.is_directory())
      files.push_back(entry.path().lexically_relative(folder).generic_string());
  std::ranges::sort(files);
  return files;
}

}  // namespace

core::ExitCode code_command(Context& context) {
  const auto& options = context.options();
  auto& runs = context.existing_runs();
  const auto found =
      recorded_attempt(runs, context.find_run(runs), options.step, options.inspect.attempt);
  const auto digest = code_of(context, found);
  const auto stored = context.artifacts().path(digest);
  json document{{"run", found.run.id},
                {"step", found.step.name},
                {"attempt", found.attempt.number},
                {"digest", digest.hex()}};
  if (const auto& target = options.inspect.copy_to; !target.empty()) {
    context.artifacts().copy_out(digest, fs::absolute(target));
    document["copied_to"] = fs::absolute(target).string();
    if (!options.json)
      context.print("the code of '" + found.step.name + "' in run " + found.run.id + " -> " +
                    shown_path(target) + "\n");
  } else {
    Table table;
    table.add({"FILE", "SIZE"});
    document["files"] = json::array();
    for (const auto& file : files_below(stored)) {
      const auto bytes = fs::file_size(stored / file);
      document["files"].push_back({{"file", file}, {"bytes", bytes}});
      table.add({file, core::format_bytes(bytes)});
    }
    if (!options.json) context.print(table.render(context.paint()));
  }
  if (options.json) context.print_json(document);
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
