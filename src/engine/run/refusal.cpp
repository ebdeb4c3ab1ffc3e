#include "engine/run/refusal.hpp"

#include <algorithm>
#include <string_view>

#include "core/digest.hpp"
#include "core/file.hpp"
#include "model/step_span.hpp"

namespace pipeline::engine {
namespace {

/// Returns the position at which a line of the text begins; npos: the text has fewer lines.
/// @param line counted from 1
std::size_t begin_of_line(std::string_view text, unsigned line) {
  std::size_t begin = 0;
  for (unsigned i = 1; i < line; ++i) {
    const auto end = text.find('\n', begin);
    if (end == text.npos) return text.npos;
    begin = end + 1;
  }
  return begin;
}

/// Reports an orchestrator's errors at the line where the step begins, unless they have lines.
void refuse_step(const core::InputError& error, const StepSpec& step,
                 const PipelineSpec& pipeline) {
  auto diagnostics = error.diagnostics();
  for (auto& diagnostic : diagnostics)
    if (diagnostic.span.line == 0) diagnostic.span = model::span_of(step);
  refuse(std::move(diagnostics), pipeline);
}

}  // namespace

std::vector<core::SourceText> sources_of(const PipelineSpec& pipeline) {
  std::vector<core::SourceText> sources;
  const auto add = [&](const std::filesystem::path& file) {
    sources.push_back({file.string(), file.empty() ? std::string() : core::read_file(file)});
  };
  add(pipeline.file);
  for (const auto& file : pipeline.included) add(file);
  return sources;
}

void mark_keys(std::vector<core::Diagnostic>& diagnostics,
               const std::vector<core::SourceText>& sources) {
  for (auto& diagnostic : diagnostics) {
    auto& span = diagnostic.span;
    if (span.line == 0 || span.file >= sources.size()) continue;
    const std::string_view source = sources[span.file].text;
    const auto line = begin_of_line(source, span.line);
    if (line == source.npos) continue;
    const auto key = source.find_first_not_of(' ', line);
    if (key == source.npos) continue;
    const auto end_of_key = std::min(source.find_first_of(":\n", key), source.size());
    span.column = static_cast<unsigned>(key - line) + 1;
    span.length = core::span_length(std::max<std::size_t>(end_of_key - key, 1));
  }
}

void refuse(std::vector<core::Diagnostic> diagnostics, const PipelineSpec& pipeline) {
  if (diagnostics.empty()) return;
  auto sources = sources_of(pipeline);
  mark_keys(diagnostics, sources);
  throw core::InputError(std::move(diagnostics), std::move(sources));
}

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
