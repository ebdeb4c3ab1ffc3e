// `pipe lock`: completes the lock file of Python packages and data.
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/display.hpp"
#include "driver/lock_packages.hpp"

namespace pipeline::cli {
namespace {

using nlohmann::json;

json to_json(driver::Session& session, const std::string& file) {
  const auto& changes = session.lock().changes();
  const auto& data = session.lock().data_changes();
  json document{{"event", "lock"}, {"file", file}, {"changes", json::array()}};
  document["written"] = session.lock().is_written();
  document["merged"] = session.lock().had_conflict();
  document["data"] = json::array();
  for (const auto& change : data)
    document["data"].push_back({{"address", change.after.address},
                                {"sha256", change.after.sha256},
                                {"size", change.after.size},
                                {"line", describe(change)}});
  for (const auto& change : changes)
    document["changes"].push_back({{"environment", shown_environment(change.after)},
                                   {"requirements", change.after.requirements},
                                   {"packages", change.after.packages.size()},
                                   {"lines", describe(change)}});
  document["removed"] = session.lock().unused();
  return document;
}

std::string to_text(driver::Session& session, const std::string& file) {
  const auto& changes = session.lock().changes();
  const auto& data = session.lock().data_changes();
  const auto& unused = session.lock().unused();
  const bool is_dry = session.workspace.options().lock.dry_run;
  const bool is_merged = session.lock().had_conflict();
  std::string text;
  if (is_merged)
    text += "git left a conflict in " + file +
            ": pipe has merged the two versions, and took ours where they differ\n";
  for (const auto& change : changes) {
    const auto lines = describe(change);
    text += shown_environment(change.after) + ": " +
            counted(change.after.packages.size(), "package") +
            (lines.empty() ? ", none of which changes" : "") + "\n";
    for (const auto& line : lines) text += "  " + for_terminal(line) + "\n";
  }
  if (!data.empty()) text += "data from elsewhere:\n";
  for (const auto& change : data) text += "  " + for_terminal(describe(change)) + "\n";
  if (!unused.empty()) text += "no step asks for:\n";
  for (const auto& line : unused) text += "  " + for_terminal(line) + "\n";
  if (changes.empty() && data.empty() && unused.empty() && !is_merged)
    return std::filesystem::exists(session.lock().path())
               ? file + " has everything that the steps need\n"
               : "no step has packages or data to lock\n";
  if (is_dry) return text + file + " was not written (--diff)\n";
  return text + file + (session.lock().is_written() ? " is written\n" : " stays as it was\n");
}

}  // namespace

core::ExitCode lock_command(Context& context) {
  driver::Session session(context);
  RunDisplay display(context);
  driver::lock_packages(session, display);
  const auto file = shown_path(session.lock().path());
  if (context.options().json)
    context.write(to_json(session, file).dump() + "\n");
  else
    context.print(to_text(session, file));
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
