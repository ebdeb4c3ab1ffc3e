#include "driver/lock_packages.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include <nlohmann/json.hpp>

#include "core/diagnostic.hpp"
#include "driver/error_report.hpp"
#include "engine/data/download.hpp"
#include "engine/data/pinned_data.hpp"
#include "engine/run/refusal.hpp"
#include "model/step_span.hpp"
#include "settings/settings.hpp"

namespace pipeline::driver {
namespace {

/// Locks one environment after the other, so that environments that share requirements share
/// versions, too. With --check, `refused` receives everything that the file lacks, once for all
/// steps with equal settings.
async::Task<> lock_environments(Session& session, RunObserver& observer,
                                std::vector<core::Diagnostic>& refused) {
  std::set<std::string> refused_settings;
  for (const auto* step : session.source.selected_steps()) {
    if (observer.cancel().level() != core::StopLevel::none) break;
    const auto settings = settings::to_json(step->settings->docker).dump();
    if (refused_settings.contains(settings)) continue;
    try {
      co_await session.routes().of(*step).lock(*step, observer.events(), observer.cancel());
    } catch (const core::InputError& error) {
      if (!error.file().empty()) throw;
      refused_settings.insert(settings);
      for (auto each : error.diagnostics()) {
        each.span = model::span_of(*step);
        const auto is_same = [&](const auto& other) { return other.message == each.message; };
        // Without notes, the message concerns the lock file as a whole, and is reported once.
        if (!each.notes.empty() || std::ranges::none_of(refused, is_same))
          refused.push_back(std::move(each));
      }
    }
  }
}

/// Locks the packages of all environments, then the data.
async::Task<> lock_all(Session& session, RunObserver& observer) {
  const auto services = session.services();
  // Comes first: the constructor tells the lock file which names belong to data.
  engine::PinnedData data(services);
  std::vector<core::Diagnostic> refused;
  co_await lock_environments(session, observer, refused);
  const auto steps = session.source.selected_steps();
  if (session.lock().options().frozen) {
    std::ranges::move(data.missing(steps), std::back_inserter(refused));
    engine::refuse(std::move(refused), session.pipeline());
    co_return;
  }
  if (observer.cancel().level() != core::StopLevel::none) co_return;
  engine::Downloads downloads(services, observer.events(), observer.cancel());
  co_await data.lock(steps, downloads, observer.events(), observer.cancel());
}

}  // namespace

void lock_packages(Session& session, RunObserver& observer) {
  if (!session.lock().options().frozen) session.lock().accept_conflicts();
  session.pipeline();  // Errors of the file are reported before errors of the machine.
  require_engine(session);
  observer.begin(session.workspace.loop());
  const auto forwarded = session.workspace.run_stopped_by(observer.cancel());
  const auto is_stopped = [&] { return observer.cancel().level() != core::StopLevel::none; };
  try {
    session.workspace.await(lock_all(session, observer));
  } catch (const core::EnvironmentError&) {
    if (!is_stopped()) throw;
  }
  observer.end();
  if (is_stopped()) throw Interrupted();
  session.settle_lock();
  session.lock().refuse_unused();
  if (auto unknown = session.lock().unknown_upgrade())
    throw core::InputError({std::move(*unknown)}, std::string(), std::string());
}

}  // namespace pipeline::driver
