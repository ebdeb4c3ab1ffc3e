#include <set>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/run_records.hpp"
#include "core/identifier.hpp"
#include "core/quantity.hpp"
#include "driver/named_artifact.hpp"

namespace pipeline::cli {
namespace {

using nlohmann::json;

/// Follows an artifact to the steps that took it, and to what was made of their outputs.
class Uses {
 public:
  explicit Uses(store::RunStore& store) : store_(store) {}

  /// @param since when it was made: what has another's equal artifact may have begun before
  json of(const core::Digest& artifact, WallTime since = {}) {
    auto users = json::array();
    for (const auto& step : store_.lineage().consumers(artifact))
      if (step.started >= since) users.push_back(entry_of(step, artifact));
    return users;
  }

 private:
  json entry_of(const store::StepRecord& step, const core::Digest& artifact) {
    json entry{{"run", step.run},
               {"step", step.name},
               {"inputs", inputs_of(step, artifact)},
               {"started", core::format_time(step.started)},
               {"outputs", json::array()}};
    if (const auto run = store_.runs().find(step.run)) entry["pipeline"] = run->pipeline;
    for (const auto& output : step.outputs) {
      json made{{"output", output.name}, {"digest", output.digest.hex()}, {"bytes", output.bytes}};
      if (seen_.insert(output.digest.hex() + step.run + "." + step.name).second)
        made["used"] = of(output.digest, step.ended);
      else
        made["shown_before"] = true;
      entry["outputs"].push_back(std::move(made));
    }
    return entry;
  }

  /// The names under which the step took the artifact.
  json inputs_of(const store::StepRecord& step, const core::Digest& artifact) {
    auto names = json::array();
    std::set<std::string> data;  // A folder has the content once more in an entry.
    for (const auto& part : store_.cache().key_parts(step.key)) {
      if (part.name.starts_with("data ") && names_content(part, artifact)) {
        const auto name = part.name.substr(5, part.name.find('/') - 5);
        if (data.insert(name).second) names.push_back(name);
      }
      if (!part.name.starts_with("input ")) continue;
      const auto input = store::artifact_of(part);
      if (!input) continue;
      const auto pieces = store_.lineage().gathered(*input);
      if (*input == artifact ||
          std::ranges::find(pieces, artifact, &store::GatheredPiece::artifact) != pieces.end())
        names.push_back(part.name.substr(6));
    }
    for (const auto& [axis, taken] : store_.lineage().matrix_inputs(step.key))
      if (taken == artifact) names.push_back(axis);
    return names;
  }

  static bool names_content(const store::KeyPart& part, const core::Digest& content) {
    const auto digest = content.hex();
    return part.value.find(digest) != part.value.npos ||
           part.producer.find(digest) != part.producer.npos;
  }

  store::RunStore& store_;
  std::set<std::string> seen_;
};

void add_rows(const json& users, const std::string& indent, Table& table) {
  for (const auto& user : users) {
    std::string inputs;
    for (const auto& name : user["inputs"])
      inputs += (inputs.empty() ? "" : ", ") + name.get<std::string>();
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
  const auto& words = context.options().subject;
  auto& store = context.existing_store();
  const auto digest = driver::digest_named(store, words);
  const auto users = Uses(store).of(digest);
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
