#include "engine/run/remains.hpp"

#include "core/error.hpp"

namespace pipeline::engine {

async::Task<> remove_orphans(const RunContext& context) {
  std::string notice;
  try {
    co_await context.services.routes.remove_orphans([&](const std::string& id) {
      const auto run = context.services.store.runs().find(id);
      return run && run->status == RunStatus::running;
    });
  } catch (const core::EnvironmentError& error) {
    notice = std::string("cannot remove the remains of the run: ") + error.what();
  }
  if (!notice.empty()) context.events.emit(event::Notice{"", notice});
}

std::string remove_work_folders(const RunContext& context, const std::string& run_id) {
  try {
    const auto& paths = context.services.store.paths();
    paths.remove(paths.work_folder(run_id));
    return {};
  } catch (const core::EnvironmentError& error) {
    return std::string(error.what()) +
           "; all results are stored; once its owner has removed it, or given it to you, `pipe "
           "clean --runs` removes the rest";
  }
}

}  // namespace pipeline::engine
