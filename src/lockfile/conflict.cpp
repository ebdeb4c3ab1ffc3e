#include "lockfile/conflict.hpp"

#include "core/text.hpp"

namespace pipeline::lockfile {
namespace {

enum class Part { both, ours, ancestor, theirs };

/// Returns the part that a marker begins; nothing for other lines.
std::optional<Part> part_begun_by(std::string_view line) {
  if (line.starts_with("<<<<<<< ")) return Part::ours;
  if (line.starts_with("||||||| ") || line == "|||||||") return Part::ancestor;
  if (line == "=======") return Part::theirs;
  if (line.starts_with(">>>>>>> ")) return Part::both;
  return std::nullopt;
}

bool can_follow(Part part, Part next) {
  switch (next) {
    case Part::ours: return part == Part::both;
    case Part::ancestor: return part == Part::ours;
    case Part::theirs: return part == Part::ours || part == Part::ancestor;
    case Part::both: return part == Part::theirs;
  }
  return false;
}

}  // namespace

bool is_conflict_marker(std::string_view line) { return part_begun_by(line).has_value(); }

std::optional<ConflictSides> conflict_sides(std::string_view text) {
  ConflictSides sides;
  auto part = Part::both;
  bool has_markers = false;
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    const auto whole = text.substr(0, std::min(line.size() + 1, text.size()));
    text.remove_prefix(whole.size());
    if (const auto next = part_begun_by(core::trimmed(line, "\r"))) {
      if (!can_follow(part, *next)) return std::nullopt;
      part = *next;
      has_markers = true;
      continue;
    }
    if (part == Part::both || part == Part::ours) sides.ours += whole;
    if (part == Part::both || part == Part::theirs) sides.theirs += whole;
  }
  if (!has_markers || part != Part::both) return std::nullopt;
  return sides;
}

}  // namespace pipeline::lockfile
