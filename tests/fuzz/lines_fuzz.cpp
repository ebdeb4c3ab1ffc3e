/// @file
/// Fuzzes the output of steps: lines of any length, cut anywhere, and those with `@pipe {`. A shown
/// line is the same as the step's if it is not structured.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/lines.hpp"
#include "model/structured_line.hpp"

namespace {

std::vector<std::string> lines_in(std::string_view text, std::size_t piece) {
  std::vector<std::string> found;
  pipeline::core::Lines lines(64);
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size())))
    lines.feed(text.substr(0, piece), [&](std::string_view line) { found.emplace_back(line); });
  found.push_back(lines.rest());
  return found;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pipeline;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (lines_in(text, 1) != lines_in(text, size + 1) || lines_in(text, 7) != lines_in(text, 64))
    __builtin_trap();
  for (const auto& line : lines_in(text, size + 1)) model::shown_line(line);
  const auto whole = std::string(model::structured_prefix) + std::string(text);
  for (const auto line : {std::string_view(text), std::string_view(whole)}) {
    const auto parsed = model::parse_structured(line);
    if (parsed && !parsed->is_object()) __builtin_trap();
    if (!parsed && model::shown_line(line) != line) __builtin_trap();
  }
  model::shown_line(whole);
  return 0;
}
