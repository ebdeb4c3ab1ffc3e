#include <set>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/lineage.hpp"
#include "cli/run_records.hpp"
#include "core/bounded_json.hpp"
#include "core/diagnostic.hpp"
#include "core/identifier.hpp"
#include "core/quantity.hpp"

namespace pipeline::cli {
namespace {

using nlohmann::json;

/// Follows an artifact back to the steps that made it, and those that made their inputs.
class Lineage {
 public:
  explicit Lineage(store::RunStore& runs) : runs_(runs) {}

  /// Null if no step made it.
  json of(const core::Digest& artifact) {
    const auto step = runs_.maker(artifact);
    if (!step) return nullptr;
    json entry{{"digest", artifact.hex()}, {"run", step->run}, {"step", step->name}};
    for (const auto& output : step->outputs)
      if (output.digest == artifact) {
        entry["output"] = output.name;
        entry["bytes"] = output.bytes;
      }
    if (!seen_.insert(artifact.hex()).second) {
      entry["shown_before"] = true;
      return entry;
    }
    add_run(*step, entry);
    add_key(*step, entry);
    return entry;
  }

 private:
  void add_run(const store::StepRecord& step, json& entry) {
    entry["attempt"] = step.attempts;
    entry["image"] = step.image;
    entry["started"] = core::format_time(step.started);
    entry["parameters"] = core::parse_json(step.parameters);
    const auto run = runs_.find_run(step.run);
    if (!run) return;
    entry["pipeline"] = run->pipeline;
    entry["file"] = run->file;
    if (!run->git_commit.empty())
      entry["git"] = {{"commit", run->git_commit}, {"dirty", run->git_dirty}};
  }

  void add_key(const store::StepRecord& step, json& entry) {
    entry["code"] = json::object();
    entry["inputs"] = json::object();
    for (const auto& part : runs_.key_parts(step.key)) {
      if (part.name == "command") entry["command"] = part.value;
      if (part.name.starts_with("code ")) entry["code"][part.name.substr(5)] = part.value;
      if (!part.name.starts_with("input ")) continue;
      const auto source = store::artifact_of(part);
      entry["inputs"][part.name.substr(6)] = source ? source_of(*source) : json();
    }
  }

  /// A gathered input is a list of artifacts.
  json source_of(const core::Digest& input) {
    const auto pieces = runs_.gathered(input);
    if (pieces.empty()) return of(input);
    auto list = json::array();
    for (const auto& piece : pieces) list.push_back(of(piece));
    return list;
  }

  store::RunStore& runs_;
  std::set<std::string> seen_;
};

std::string text_of(const json& entry, const std::string& indent, const Paint& paint) {
  const auto& digest = entry["digest"].get_ref<const std::string&>();
  auto text = paint(Colour::bold,
                    entry["step"].get<std::string>() + "." + entry.value("output", std::string())) +
              "  " + digest.substr(0, shown_digits) + "  " +
              core::format_bytes(entry.value("bytes", std::uint64_t{0}));
  if (entry.contains("shown_before")) return text + "  (see above)\n";
  text += "\n";
  const auto line = [&](std::string name, const std::string& value) {
    for (const auto each : lines_of(value)) {
      text += indent + "  " + paint(Colour::dim, name) + for_terminal(each, false) + "\n";
      name.assign(name.size(), ' ');  // Further lines stand below the first.
    }
  };
  line("made by:    ", "run " + entry["run"].get<std::string>() + " of " +
                           entry.value("pipeline", std::string()) + ", attempt " +
                           entry["attempt"].dump() + ", " + entry["started"].get<std::string>());
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
            content.get<std::string>().substr(0, shown_digits);
  line("code:       ", code);
  for (const auto& [name, input] : entry["inputs"].items()) {
    for (const auto& piece : input.is_array() ? input : json::array({input})) {
      text += indent + "  " + paint(Colour::dim, "input ") + for_terminal(name, false) + ": ";
      text += piece.is_null() ? "not known here\n" : text_of(piece, indent + "    ", paint);
    }
  }
  return text;
}

}  // namespace

core::ExitCode why_command(Context& context) {
  const auto& words = context.options().subject;
  auto& runs = context.existing_runs();
  const auto digest = digest_named(runs, words);
  const auto entry = Lineage(runs).of(digest);
  if (entry.is_null())
    throw core::InputError("no step in this state folder made '" + words + "' (" +
                           digest.hex().substr(0, shown_digits) + ")");
  if (context.options().json)
    context.print_json(entry);
  else
    context.print(text_of(entry, "", context.paint()));
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
