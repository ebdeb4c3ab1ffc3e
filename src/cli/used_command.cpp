// `pipe used`: lists what was made with a file or an artifact.
#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "core/joined.hpp"
#include "core/quantity.hpp"
#include "driver/named_artifact.hpp"
#include "report/uses.hpp"

namespace pipeline::cli {
namespace {

using nlohmann::json;

/// Adds a row for each artifact that was made with the artifact, and below each, indented, those
/// made with that in turn. `users` are as report::uses_of() returns them.
void add_rows(const json& users, const std::string& indent, Table& table) {
  for (const auto& user : users) {
    const auto inputs = core::joined(user["inputs"].get<std::vector<std::string>>(), ", ");
    const auto step = user["step"].get<std::string>();
    const auto add = [&](const std::string& made, const std::string& size,
                         const std::string& digest) {
      table.add({indent + made, inputs, user.value("pipeline", std::string()),
                 user["run"].get<std::string>(), user["started"].get<std::string>(), size, digest});
    };
    if (user["outputs"].empty()) add(step, "", "");
    for (const auto& output : user["outputs"]) {
      const auto digest = output["digest"].get<std::string>().substr(0, driver::shown_digits);
      add(step + "." + output["output"].get<std::string>(),
          core::format_bytes(output["bytes"].get<std::uint64_t>()),
          digest + (output.contains("shown_before") ? " (see above)" : ""));
      if (output.contains("used")) add_rows(output["used"], indent + "  ", table);
    }
  }
}

}  // namespace

core::ExitCode used_command(Context& context) {
  const auto& words = context.options().artifact;
  auto& store = context.existing_store();
  const auto digest = driver::artifact_named(store, words).digest;
  const auto users = report::uses_of(store, digest);
  if (context.options().json) {
    context.print_json({{"digest", digest.hex()}, {"used", users}});
  } else if (users.empty()) {
    context.note("no step in this state folder took '" + words + "' (" +
                 digest.hex().substr(0, driver::shown_digits) + ") as an input\n");
  } else {
    Table table;
    table.add({"MADE WITH IT", "AS INPUT", "PIPELINE", "RUN", "STARTED", "SIZE", "DIGEST"});
    add_rows(users, "", table);
    context.print(table.render(context.paint()));
  }
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
