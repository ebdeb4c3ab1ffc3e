#include "engine/run/refusal.hpp"

#include <algorithm>

#include "core/digest.hpp"
#include "core/file.hpp"
#include "model/step_span.hpp"

namespace pipeline::engine {

std::vector<core::SourceText> sources_of(const PipelineSpec& pipeline) {
  std::vector<core::SourceText> sources;
  const auto add = [&](const std::filesystem::path& file) {
    sources.push_back({file.string(), file.empty() ? std::string() : core::read_file(file)});
  };
  add(pipeline.file);
  for (const auto& file : pipeline.included) add(file);
  return sources;
}

void mark_keys(std::vector<core::Diagnostic>& wrong, const std::vector<core::SourceText>& sources) {
  for (auto& diagnostic : wrong) {
    if (diagnostic.span.file >= sources.size()) continue;
    const auto& source = sources[diagnostic.span.file].text;
    std::size_t line = 0;
    for (unsigned i = 1; i < diagnostic.span.line && line != std::string::npos; ++i)
      if ((line = source.find('\n', line)) != std::string::npos) ++line;
    const auto text = line == std::string::npos ? line : source.find_first_not_of(' ', line);
    if (diagnostic.span.line == 0 || text == std::string::npos) continue;
    diagnostic.span.column = static_cast<unsigned>(text - line) + 1;
    const auto end = std::min(source.find_first_of(":\n", text), source.size());
    diagnostic.span.length = static_cast<unsigned>(std::max<std::size_t>(end - text, 1));
  }
}

void refuse(std::vector<core::Diagnostic> wrong, const PipelineSpec& pipeline) {
  if (wrong.empty()) return;
  auto sources = sources_of(pipeline);
  mark_keys(wrong, sources);
  throw core::InputError(std::move(wrong), std::move(sources));
}

async::Task<orchestrators::Environment> environment_of(const RunContext& context,
                                                       const StepSpec& step) {
  auto& orchestrator = context.services.routes.of(step);
  std::vector<core::Diagnostic> wrong;
  try {
    auto environment = co_await orchestrator.environment(step);
    if (!context.options.shared) co_return environment;
    co_return co_await shared_environment(orchestrator, step, std::move(environment));
  } catch (const core::InputError& error) {
    if (!error.file().empty()) throw;
    wrong = error.diagnostics();
  }
  for (auto& diagnostic : wrong)
    if (diagnostic.span.line == 0) diagnostic.span = model::span_of(step);
  refuse(std::move(wrong), context.services.pipeline);
  co_return orchestrators::Environment{};
}

async::Task<orchestrators::Environment> shared_environment(
    orchestrators::Orchestrator& orchestrator, const StepSpec& step,
    orchestrators::Environment environment) {
  if (!environment.resolves) co_return environment;
  if (!environment.ready) {
    environment.id.clear();
    co_return environment;
  }
  const auto packages = co_await orchestrator.packages(step);
  environment.id = core::Hasher().field(environment.id).field(packages).finish().hex();
  co_return environment;
}

}  // namespace pipeline::engine
