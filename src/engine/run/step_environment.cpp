#include "engine/run/step_environment.hpp"

#include <utility>

#include "core/digest.hpp"
#include "engine/run/refusal.hpp"
#include "model/step_span.hpp"

namespace pipeline::engine {
namespace {

/// Reports an orchestrator's errors at the line where the step begins, unless they have lines.
void refuse_step(const core::InputError& error, const StepSpec& step,
                 const PipelineSpec& pipeline) {
  auto diagnostics = error.diagnostics();
  for (auto& diagnostic : diagnostics)
    if (diagnostic.span.line == 0) diagnostic.span = model::span_of(step);
  refuse(std::move(diagnostics), pipeline);
}

}  // namespace

async::Task<orchestrators::Environment> environment_of(const RunContext& context,
                                                       const StepSpec& step) {
  auto& orchestrator = context.services.routes.of(step);
  try {
    auto environment = co_await orchestrator.environment(step);
    if (!context.options.remote_cache) co_return environment;
    co_return co_await shared_environment(orchestrator, step, std::move(environment));
  } catch (const core::InputError& error) {
    // An error that names a file already has its place.
    if (error.file().empty()) refuse_step(error, step, context.services.pipeline);
    throw;
  }
}

async::Task<orchestrators::Environment> shared_environment(
    orchestrators::Orchestrator& orchestrator, const StepSpec& step,
    orchestrators::Environment environment) {
  if (!environment.resolves) co_return environment;
  if (!environment.ready) {
    environment.id.clear();  // The versions of its packages are not chosen yet.
    co_return environment;
  }
  // Two machines that chose different versions of packages get different ids.
  const auto packages = co_await orchestrator.packages(step);
  environment.id = core::Hasher().field(environment.id).field(packages).finish().hex();
  co_return environment;
}

}  // namespace pipeline::engine
