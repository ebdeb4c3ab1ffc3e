#include "driver/unified_diff.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/text.hpp"

namespace pipeline::driver {
namespace {

constexpr unsigned shown_around = 3;  // Lines before and after a change.

/// A part of the diff: its first and last line, counted from 1.
struct Hunk {
  unsigned begin, end;
};

/// Returns the hunks; changes whose surrounding lines meet share a hunk.
/// @param last number of the text's last line
std::vector<Hunk> hunks_of(const std::map<unsigned, std::string>& lines, unsigned last) {
  std::vector<Hunk> hunks;
  for (const auto& [line, text] : lines) {
    const Hunk hunk{line > shown_around ? line - shown_around : 1,
                    std::min(line + shown_around, last)};
    if (!hunks.empty() && hunk.begin <= hunks.back().end + 1)
      hunks.back().end = hunk.end;
    else
      hunks.push_back(hunk);
  }
  return hunks;
}

}  // namespace

std::string unified_diff(std::string_view name, std::string_view text,
                         const std::map<unsigned, std::string>& lines) {
  if (lines.empty()) return {};
  const auto old = core::lines_of(text);
  const auto last = static_cast<unsigned>(old.size());
  const auto line_end = [&](unsigned line) {
    return line == last && !text.ends_with('\n') ? "\n\\ No newline at end of file\n" : "\n";
  };
  std::string diff = "--- a/" + std::string(name) + "\n+++ b/" + std::string(name) + "\n";
  for (const auto& [begin, end] : hunks_of(lines, last)) {
    const auto range = std::to_string(begin) + "," + std::to_string(end - begin + 1);
    diff += "@@ -" + range + " +" + range + " @@\n";
    std::string added;  // Follows all removed lines that are next to each other.
    for (auto i = begin; i <= end; ++i) {
      const auto old_line = std::string(old[i - 1]) + line_end(i);
      if (const auto replaced = lines.find(i); replaced != lines.end()) {
        diff += "-" + old_line;
        added += "+" + replaced->second + line_end(i);
      } else {
        diff += std::exchange(added, {}) + " " + old_line;
      }
    }
    diff += added;
  }
  return diff;
}

}  // namespace pipeline::driver
