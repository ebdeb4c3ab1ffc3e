#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/display.hpp"
#include "cli/report_error.hpp"
#include "cli/session.hpp"
#include "engine/data/download.hpp"
#include "engine/data/pinned_data.hpp"
#include "engine/run/refusal.hpp"
#include "settings/settings.hpp"

namespace pipeline::cli {
namespace {

using nlohmann::json;

std::string environment_of(const lockfile::LockedEnvironment& environment) {
  return environment.parent == lockfile::local_parent
             ? "Python " + environment.python + " of this machine"
             : environment.parent;
}

/// One after the other: environments that share requirements then share versions, too. With --check
/// all that the file lacks is reported, at the first of the steps with equal settings.
/// @param refused receives it
async::Task<> lock_environments(Session& session, Display& display,
                                std::vector<core::Diagnostic>& refused) {
  std::set<std::string> refused_settings;
  for (const auto* step : session.source.selected_steps()) {
    if (display.cancel().level() != core::StopLevel::none) break;
    const auto settings = settings::to_json(step->settings->docker).dump();
    if (refused_settings.contains(settings)) continue;
    try {
      co_await session.orchestrator().lock(*step, display.progress(), display.cancel());
    } catch (const core::InputError& error) {
      if (!error.file().empty()) throw;
      refused_settings.insert(settings);
      for (auto each : error.diagnostics()) {
        each.span = {step->line, 0, 1, step->file};
        const auto is_file = [&](const auto& other) { return other.message == each.message; };
        if (!each.notes.empty() || std::ranges::none_of(refused, is_file))
          refused.push_back(std::move(each));
      }
    }
  }
}

async::Task<> lock_all(Session& session, Display& display) {
  const auto services = session.services();
  engine::PinnedData data(services);  // First, because it says which names are of data.
  std::vector<core::Diagnostic> refused;
  co_await lock_environments(session, display, refused);
  const auto steps = session.source.selected_steps();
  if (session.lock().options().frozen) {
    std::ranges::move(data.missing(steps), std::back_inserter(refused));
    engine::refuse(std::move(refused), session.pipeline());
    co_return;
  }
  if (display.cancel().level() != core::StopLevel::none) co_return;
  engine::Downloads downloads(services, display.progress(), display.cancel());
  co_await data.lock(steps, downloads, display.progress(), display.cancel());
}

json to_json(Session& session, const std::string& file) {
  const auto& changes = session.lock().changes();
  const auto& data = session.lock().data_changes();
  json document{{"event", "lock"}, {"file", file}, {"changes", json::array()}};
  document["written"] = !session.context.options().lock.dry_run &&
                        (session.lock().had_conflict() || !(changes.empty() && data.empty()));
  document["merged"] = session.lock().had_conflict();
  document["data"] = json::array();
  for (const auto& change : data)
    document["data"].push_back({{"address", change.after.address},
                                {"sha256", change.after.sha256},
                                {"size", change.after.size},
                                {"line", describe(change)}});
  for (const auto& change : changes)
    document["changes"].push_back({{"environment", environment_of(change.after)},
                                   {"requirements", change.after.requirements},
                                   {"packages", change.after.packages.size()},
                                   {"lines", describe(change)}});
  return document;
}

std::string to_text(Session& session, const std::string& file) {
  const auto& changes = session.lock().changes();
  const auto& data = session.lock().data_changes();
  const bool is_dry = session.context.options().lock.dry_run;
  const bool is_merged = session.lock().had_conflict();
  std::string text;
  if (is_merged)
    text += "git could not merge two versions of " + file +
            ": what both have locked is taken together, and where they differ, ours\n";
  for (const auto& change : changes) {
    const auto lines = describe(change);
    text += environment_of(change.after) + ": " + counted(change.after.packages.size(), "package") +
            (lines.empty() ? ", none changes" : "") + "\n";
    for (const auto& line : lines) text += "  " + for_terminal(line, false) + "\n";
  }
  if (!data.empty()) text += "data from elsewhere:\n";
  for (const auto& change : data) text += "  " + for_terminal(describe(change), false) + "\n";
  if (changes.empty() && data.empty() && !is_merged)
    return std::filesystem::exists(session.lock().path())
               ? file + " has all that the steps ask for\n"
               : "no step has packages or data to lock\n";
  if (is_dry) return text + file + " was not written (--diff)\n";
  return text + file + (session.lock().is_written() ? " is written\n" : " stays as it was\n");
}

}  // namespace

core::ExitCode lock_command(Context& context) {
  Session session(context);
  if (!session.lock().options().frozen) session.lock().merge_conflicts();
  session.pipeline();
  require_engine(session);
  Display display(context);
  context.await(lock_all(session, display));
  display.close();
  if (display.cancel().level() != core::StopLevel::none) throw Interrupted();
  session.settle_lock();
  if (auto unknown = session.lock().unknown_upgrade())
    throw core::InputError({std::move(*unknown)}, std::string(), std::string());
  const auto file = shown_path(session.lock().path());
  if (context.options().json)
    context.print(to_json(session, file).dump() + "\n");
  else
    context.print(to_text(session, file));
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
