#include "engine/run/refusal.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/file.hpp"

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

}  // namespace pipeline::engine
