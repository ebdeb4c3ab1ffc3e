// `pipe build`: prepares the environments of the selected steps, and runs nothing.
#include <unistd.h>

#include <set>

#include "cli/commands.hpp"
#include "cli/display.hpp"
#include "cli/report_error.hpp"
#include "core/file.hpp"
#include "driver/error_report.hpp"
#include "driver/session.hpp"

namespace pipeline::cli {
namespace {

/// The environment of a step, or the error of preparing it.
struct Prepared {
  const StepSpec* step;
  orchestrators::Environment environment;
  std::exception_ptr error;
};

/// Prepares all environments concurrently; the orchestrator recognises equal ones.
async::Task<std::vector<Prepared>> prepare_all(driver::Session& session, Display& display,
                                               std::vector<const StepSpec*> steps) {
  const auto executor = co_await asio::this_coro::executor;
  std::vector<Prepared> all;
  for (const auto* step : steps) all.push_back({step, {}, {}});
  std::size_t open = all.size();
  asio::steady_timer done(executor, asio::steady_timer::time_point::max());
  for (auto& one : all) {
    asio::co_spawn(
        executor,
        session.routes().of(*one.step).prepare(*one.step, display.progress(), display.cancel()),
        [&](std::exception_ptr error, orchestrators::Environment environment) {
          one.environment = std::move(environment);
          one.error = error;
          if (--open == 0) done.cancel();
        });
  }
  boost::system::error_code ignored;
  while (open > 0) co_await done.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  co_return all;
}

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace

core::ExitCode build_command(Context& context) {
  driver::Session session(context);
  const auto steps = session.source.selected_steps();
  require_engine(session);  // Only if a step needs an engine.
  Display display(context);
  const auto all = context.await(prepare_all(session, display, steps));
  display.close();
  if (display.cancel().level() != core::StopLevel::none) throw driver::Interrupted();

  std::set<std::string> reported;
  core::ExitCode code = core::ExitCode::ok;
  Table table;
  table.add({"STEP", "ENVIRONMENT"});
  nlohmann::json environments = nlohmann::json::array();
  for (const auto& [step, environment, error] : all) {
    if (!error) {
      table.add({step->name, shorten_digests(for_terminal(environment.description))});
      environments.push_back(
          {{"step", step->name}, {"environment", environment.description}, {"id", environment.id}});
    } else if (reported.insert(message_of(error)).second) {
      const auto report = report_error(error, Paint{Terminal::of(STDERR_FILENO).colours});
      // A failed build outweighs other errors.
      if (code == core::ExitCode::ok || report.code == core::ExitCode::build_failed)
        code = report.code;
      if (context.options().json) context.write(driver::error_json(error).dump() + "\n");
      core::write_all(STDERR_FILENO, report.text);
    }
  }
  if (context.options().json) {
    context.write(nlohmann::json{{"event", "summary"},
                                 {"environments", environments},
                                 {"exit_code", static_cast<int>(code)}}
                      .dump() +
                  "\n");
  } else {
    context.print(table.render(context.paint()));
  }
  return code;
}

}  // namespace pipeline::cli
