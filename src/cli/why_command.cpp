#include <algorithm>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/run_records.hpp"
#include "core/diagnostic.hpp"
#include "core/quantity.hpp"
#include "report/lineage.hpp"

namespace pipeline::cli {
namespace {

using nlohmann::json;

constexpr std::size_t shown_digits = 12;

/// Returns the digest that the words name: a file's content, 64 digits, or the beginning of an
/// artifact's digest. Throws InputError.
core::Digest digest_named(store::RunStore& runs, const std::string& words) {
  constexpr std::size_t all_digits = 64, fewest_digits = 6;
  std::error_code error;
  if (std::filesystem::is_regular_file(words, error)) return core::sha256_file(words);
  const bool is_hex = std::ranges::all_of(
      words, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  if (is_hex && words.size() == all_digits) return core::Digest::from_hex(words);
  std::vector<core::Digest> found;
  if (is_hex && words.size() >= fewest_digits)
    for (const auto& digest : runs.referenced_artifacts())
      if (digest.hex().starts_with(words)) found.push_back(digest);
  if (found.size() == 1) return found.front();
  throw core::InputError(
      found.empty() ? "there is no file and no artifact '" + words + "'"
                    : "'" + words + "' is the beginning of several digests",
      "name a file, or an artifact by its digest: `pipe artifacts --output json` lists them");
}

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
    text += indent + "  " + paint(Colour::dim, "input ") + for_terminal(name, false) + ": ";
    text += input.is_null() ? "not known here\n" : text_of(input, indent + "    ", paint);
  }
  return text;
}

}  // namespace

core::ExitCode why_command(Context& context) {
  const auto& words = context.options().subject;
  auto& runs = context.existing_runs();
  const auto digest = digest_named(runs, words);
  const auto entry = report::lineage_of(runs, digest);
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
