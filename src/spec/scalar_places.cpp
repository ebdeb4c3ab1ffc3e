#include "spec/scalar_places.hpp"

#include <algorithm>
#include <optional>

#include "core/text.hpp"

namespace pipeline::spec {

core::Span ScalarPlaces::find(const core::Value& scalar, std::size_t offset, std::size_t length) {
  const auto [known, is_new] = lines_.try_emplace(scalar.span.file);
  auto& lines = known->second;
  if (is_new && scalar.span.file < sources_.size())
    lines = core::split(sources_[scalar.span.file], '\n');
  const std::string_view text = scalar.scalar;
  const auto wanted = text.substr(offset, length);
  const auto before = text.substr(0, offset);
  const auto line_break = before.rfind('\n');
  const auto in_line = line_break == std::string_view::npos ? offset : offset - line_break - 1;
  const auto line_number =
      scalar.span.line + static_cast<unsigned>(std::count(before.begin(), before.end(), '\n'));
  const auto at = [&](std::size_t line, std::size_t column) -> std::optional<core::Span> {
    if (line == 0 || line > lines.size() ||
        lines[line - 1].substr(std::min(column, lines[line - 1].size()), length) != wanted)
      return std::nullopt;
    return core::Span{static_cast<unsigned>(line), static_cast<unsigned>(column + 1),
                      core::span_length(length), scalar.span.file};
  };
  const std::size_t start = scalar.span.column - 1;
  if (line_break == std::string_view::npos) {
    if (auto span = at(scalar.span.line, start + offset)) return *span;      // A plain scalar.
    if (auto span = at(scalar.span.line, start + 1 + offset)) return *span;  // A quoted scalar.
  }
  if (line_number < lines.size()) {  // A block scalar that begins with `|`.
    const auto indent =
        lines[scalar.span.line < lines.size() ? scalar.span.line : 0].find_first_not_of(' ');
    if (indent != std::string_view::npos)
      if (auto span = at(line_number + 1, indent + in_line)) return *span;
  }
  return scalar.span;
}

}  // namespace pipeline::spec
