#include "orchestrators/executor/executor_orchestrator.hpp"

#include <future>
#include <thread>

#include "core/digest.hpp"
#include "core/error.hpp"
#include "core/file.hpp"

namespace pipeline::orchestrators::executor {
namespace {

namespace fs = std::filesystem;

class ExecutorOrchestrator final : public Orchestrator {
 public:
  ExecutorOrchestrator(asio::io_context& loop, Executor& executor)
      : loop_(loop),
        executor_(executor),
        capabilities_{.name = executor.name(),
                      // The executor may run steps on a machine with other files than this one.
                      .traits = {.uses_images = true},
                      .gpus = true,
                      .gpus_of_this_machine = false,
                      .memory_limits = true,
                      .cpu_limits = true} {}

  const Capabilities& capabilities() const override { return capabilities_; }

  async::Task<Environment> environment(const StepSpec& step) override {
    const auto text = executor_.environment(step);
    Environment environment;
    environment.id = core::Hasher().field(capabilities_.name).field(text).finish().hex();
    environment.description = text;
    environment.ready = true;
    co_return environment;
  }

  async::Task<Environment> prepare(const StepSpec& step, EventSink&, core::CancelSource&) override {
    co_return co_await environment(step);
  }

  async::Task<AttemptResult> run(const Attempt& attempt) override {
    Layout layout;
    layout.code = fs::absolute(attempt.code).string();
    layout.inputs = fs::absolute(attempt.scratch / "inputs").string();
    layout.outputs = fs::absolute(attempt.outputs).string();
    layout.scratch = fs::absolute(attempt.scratch).string();
    if (!attempt.checkpoint.empty()) layout.checkpoint = fs::absolute(attempt.checkpoint).string();
    if (const auto& program = attempt.step.program)
      layout.program = {program->program->executable.string()};
    core::make_folders(layout.inputs);
    for (const auto& input : attempt.inputs)
      fs::create_symlink(fs::absolute(input.path), path_of(input, layout));

    ExecutorRequest request;
    request.pipeline = attempt.pipeline;
    request.run = attempt.run_id;
    request.step = attempt.step.name;
    request.number = attempt.number;
    request.command = command_of(attempt, layout);
    request.environment = variables_of(attempt, layout);
    request.folder = layout.code;
    request.outputs = layout.outputs;
    request.scratch = layout.scratch;
    request.resources = attempt.step.settings->resources;
    request.log = [this, &attempt](Stream stream, std::string_view bytes) {
      asio::post(loop_, [&attempt, stream, text = std::string(bytes)] {
        attempt.io.log.write(stream, text);
      });
    };
    std::stop_source stop;
    request.stop = stop.get_token();
    core::CancelSource::Listener listener(attempt.io.cancel,
                                          [&stop](core::StopLevel) { stop.request_stop(); });

    AttemptResult result;
    result.image = executor_.name();
    asio::steady_timer done(loop_, asio::steady_timer::time_point::max());
    // Lines that the executor logs before it returns are posted before this handler.
    std::jthread thread([this, &request, &result, &done] {
      try {
        result.failure = executor_.run(request);
      } catch (const std::exception& error) {
        result.failure = Failure{FailureKind::infrastructure, error.what(), {}, {}};
      }
      asio::post(loop_, [&done] { done.cancel(); });
    });
    boost::system::error_code ignored;
    co_await done.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    if (attempt.io.cancel.level() != core::StopLevel::none && result.failure)
      result.failure->kind = FailureKind::cancelled;
    if (!result.failure) result.exit_code = 0;
    co_return result;
  }

  async::Task<> remove_orphans(const std::function<bool(const std::string&)>&) override {
    co_return;
  }

 private:
  asio::io_context& loop_;
  Executor& executor_;
  Capabilities capabilities_;
};

}  // namespace

}  // namespace pipeline::orchestrators::executor

namespace pipeline::orchestrators {

std::unique_ptr<Orchestrator> make_executor_orchestrator(asio::io_context& loop,
                                                         Executor& executor) {
  return std::make_unique<executor::ExecutorOrchestrator>(loop, executor);
}

}  // namespace pipeline::orchestrators
