// `pipe why`: shows how a file or an artifact was made.
#include <algorithm>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "core/diagnostic.hpp"
#include "core/joined.hpp"
#include "core/quantity.hpp"
#include "driver/named_artifact.hpp"
#include "report/lineage.hpp"

namespace pipeline::cli {
namespace {

using nlohmann::json;

/// Returns `file /home/me/data.csv  4355a46b19d3`, and an end of line.
std::string data_text(const json& entry) {
  const auto& data = entry["data"];
  return data["kind"].get<std::string>() + " " + for_terminal(data["source"].get<std::string>()) +
         "  " + entry.value("digest", std::string("unknown")).substr(0, driver::shown_digits) +
         "\n";
}

/// Returns how an artifact was made, with its inputs indented below.
/// @param entry as report::lineage_of() returns it
std::string text_of(const json& entry, const std::string& indent, const Paint& paint) {
  if (entry.contains("data") && !entry.contains("step")) return data_text(entry);
  const auto& digest = entry["digest"].get_ref<const std::string&>();
  auto text = paint(Colour::bold,
                    entry["step"].get<std::string>() + "." + entry.value("output", std::string())) +
              "  " + digest.substr(0, driver::shown_digits) + "  " +
              core::format_bytes(entry.value("bytes", std::uint64_t{0})) +
              (entry.contains("temporary") ? ", temporary" : "");
  if (entry.contains("data"))
    text += ", published as " + for_terminal(entry["data"]["source"].get<std::string>());
  if (entry.contains("shown_before")) return text + "  (see above)\n";
  text += "\n";
  const auto line = [&](std::string name, const std::string& value) {
    for (const auto each : lines_of(value)) {
      text += indent + "  " + paint(Colour::dim, name) + for_terminal(each) + "\n";
      name.assign(name.size(), ' ');  // Further lines are below the first.
    }
  };
  line("made by:    ", "run " + entry["run"].get<std::string>() + " of " +
                           entry.value("pipeline", std::string()) + ", attempt " +
                           entry["attempt"].dump() + ", " + entry["started"].get<std::string>());
  if (entry.contains("published"))
    line("published:  ", core::joined(entry["published"].get<std::vector<std::string>>(), ", "));
  line("in:         ", shorten_digests(entry["image"].get<std::string>()));
  line("command:    ", entry.value("command", std::string()));
  if (!entry["parameters"].empty()) line("parameters: ", entry["parameters"].dump());
  if (entry.contains("git"))
    line("git commit: ",
         entry["git"]["commit"].get<std::string>() +
             (entry["git"]["dirty"].get<bool>() ? " and changes that are not committed" : ""));
  std::string code;
  for (const auto& [file, content] : entry["code"].items())
    code += (code.empty() ? "" : ", ") + file + " " +
            content.get<std::string>().substr(0, driver::shown_digits);
  line("code:       ", code);
  for (const auto& [name, input] : entry["inputs"].items()) {
    const auto add = [&, &name = name](const json& piece) {
      text += indent + "  " + paint(Colour::dim, "input ") + for_terminal(name) + ": ";
      text += piece.is_null() ? "not known here\n" : text_of(piece, indent + "    ", paint);
    };
    if (input.is_array())
      std::ranges::for_each(input, add);
    else
      add(input);
  }
  return text;
}

}  // namespace

core::ExitCode why_command(Context& context) {
  const auto& words = context.options().artifact;
  auto& store = context.existing_store();
  const auto artifact = driver::artifact_named(store, words);
  const auto entry = report::lineage_of(store, artifact.digest, artifact.step, artifact.run);
  if (entry.is_null())
    throw core::InputError(
        "no step in this state folder made '" + words + "' (" +
            artifact.digest.hex().substr(0, driver::shown_digits) + ")",
        "runs of other machines, and those that `pipe clean` has removed, are not "
        "known here");
  if (context.options().json)
    context.print_json(entry);
  else
    context.print(text_of(entry, "", context.paint()));
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
