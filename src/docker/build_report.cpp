#include "docker/build_report.hpp"

#include <exception>
#include <utility>

#include "docker/build_log.hpp"

namespace pipeline::docker {

async::Task<std::string> reported(async::Task<std::string> build, BuildReport report,
                                  EventSink& events, core::CancelSource& cancel) {
  const auto began = std::chrono::steady_clock::now();
  events.emit(event::BuildStarted{report.image, {report.step}, report.reason});
  event::BuildFinished end{report.image, {}, {}, {}};
  std::exception_ptr error;
  try {
    end.id = co_await std::move(build);
  } catch (const core::EnvironmentError& failed) {
    end.failure = failure_of(failed, cancel);
    error = std::current_exception();
  }
  end.took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - began);
  events.emit(end);
  if (error) std::rethrow_exception(error);
  co_return end.id;
}

}  // namespace pipeline::docker
