#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/display.hpp"
#include "cli/report_error.hpp"
#include "cli/session.hpp"
#include "engine/refusal.hpp"
#include "settings/settings.hpp"

namespace pipeline::cli {
namespace {

using nlohmann::json;

std::string environment_of(const lock::LockedEnvironment& environment) {
  return environment.parent == lock::local_parent
             ? "Python " + environment.python + " of this machine"
             : environment.parent;
}

/// One after the other: environments that share requirements then share versions, too. With --check
/// all that the file lacks is reported, at the first of the steps with equal settings.
async::Task<> lock_all(Session& session, Display& display) {
  std::vector<core::Diagnostic> refused;
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
  engine::refuse(std::move(refused), session.pipeline());
}

json to_json(const Session& session, const std::vector<lock::LockChange>& changes,
             const std::string& file) {
  json document{{"event", "lock"}, {"file", file}, {"changes", json::array()}};
  document["written"] = !session.context.options().lock.dry_run && !changes.empty();
  for (const auto& change : changes)
    document["changes"].push_back({{"environment", environment_of(change.after)},
                                   {"requirements", change.after.requirements},
                                   {"packages", change.after.packages.size()},
                                   {"lines", describe(change)}});
  return document;
}

std::string to_text(const std::vector<lock::LockChange>& changes, const std::string& file,
                    bool is_dry) {
  std::string text;
  for (const auto& change : changes) {
    const auto lines = describe(change);
    text += environment_of(change.after) + ": " + counted(change.after.packages.size(), "package") +
            (lines.empty() ? ", none changes" : "") + "\n";
    for (const auto& line : lines) text += "  " + for_terminal(line, false) + "\n";
  }
  if (changes.empty()) return file + " has all that the steps ask for\n";
  return text + (is_dry ? file + " was not written (--diff)\n" : file + " is written\n");
}

}  // namespace

core::ExitCode lock_command(Context& context) {
  Session session(context);
  session.pipeline();
  require_engine(session);
  Display display(context);
  context.await(lock_all(session, display));
  display.close();
  if (display.cancel().level() != core::StopLevel::none) throw Interrupted();
  session.settle_lock();
  const auto& changes = session.lock().changes();
  const auto file = shown_path(session.lock().path());
  if (context.options().json)
    context.print(to_json(session, changes, file).dump() + "\n");
  else
    context.print(to_text(changes, file, context.options().lock.dry_run));
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
