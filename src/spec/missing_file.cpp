#include "spec/missing_file.hpp"

#include <algorithm>
#include <array>

#include "core/text.hpp"

namespace pipeline::spec {
namespace {

/// Phrases by which programs report a missing file, in lower case.
constexpr std::array<std::string_view, 16> complaint_patterns{
    "no such file",   "not found",       "cannot open",    "can't open",
    "could not open", "unable to open",  "failed to open", "does not exist",
    "doesn't exist",  "cannot find",     "can't find",     "filenotfound",
    "enoent",         "no module named", "cannot access",  "cannot stat"};

void add(std::vector<std::string>& names, std::string_view name) {
  constexpr std::size_t max_name = 1024, max_names = 1000;
  if (name.empty() || name.size() > max_name || names.size() > max_names ||
      std::find(names.begin(), names.end(), name) != names.end())
    return;
  names.emplace_back(name);
}

/// Removes the name of the reporting program: `python: can't open file 'x.py'`, `sh: 1: cannot open
/// x`. Keeps a first name that is the only one: `data.csv: No such file or directory`.
std::string_view without_program(std::string_view line) {
  const auto end = line.find(": ");
  if (end == line.npos || line.substr(0, end).find_first_of(" '\"`") != line.npos) return line;
  const auto rest = line.substr(end + 2);
  const bool has_name = rest.find(": ") != rest.npos || rest.find_first_of("'\"`/") != rest.npos;
  return has_name ? rest : line;
}

void read_quoted(std::string_view line, std::vector<std::string>& names) {
  for (std::size_t start = 0;
       (start = line.find_first_of("'\"`", start)) != std::string_view::npos;) {
    const auto end = line.find(line[start], start + 1);
    if (end == std::string_view::npos) {
      ++start;
      continue;
    }
    add(names, line.substr(start + 1, end - start - 1));
    start = end + 1;
  }
}

void read_words(std::string_view line, std::vector<std::string>& names) {
  constexpr std::string_view separator_chars = " \t:,;()[]<>'\"`=";
  for (std::size_t start = 0;
       (start = line.find_first_not_of(separator_chars, start)) != std::string_view::npos;) {
    const auto end = std::min(line.find_first_of(separator_chars, start), line.size());
    auto word = line.substr(start, end - start);
    while (word.ends_with('.') || word.ends_with('!')) word.remove_suffix(1);
    add(names, word);
    start = end;
  }
}

}  // namespace

MissingNames missing_names(std::string_view output) {
  MissingNames names;
  std::vector<std::string> words;
  for (auto line : core::lines_of(output)) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::string folded = core::lower(line);
    if (std::none_of(complaint_patterns.begin(), complaint_patterns.end(),
                     [&](std::string_view complaint) {
                       return folded.find(complaint) != std::string::npos;
                     }))
      continue;
    constexpr std::string_view module_pattern = "no module named ";
    if (const auto found = folded.find(module_pattern); found != std::string::npos) {
      auto name = line.substr(found + module_pattern.size());
      if (name.starts_with('\'') || name.starts_with('"'))
        name = name.substr(1, name.find_first_of("'\"", 1) - 1);
      else
        name = name.substr(0, name.find_first_of(" ;,:"));
      add(names.modules, name);
      continue;
    }
    line = without_program(line);
    read_quoted(line, names.paths);
    read_words(line, words);
  }
  for (const auto& word : words) add(names.paths, word);
  return names;
}

}  // namespace pipeline::spec
