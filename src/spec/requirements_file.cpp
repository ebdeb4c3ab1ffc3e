#include "spec/requirements_file.hpp"

#include <algorithm>
#include <fstream>
#include <optional>

#include "settings/decode.hpp"

namespace pipeline::spec {
namespace {

namespace fs = std::filesystem;

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

/// Removes a comment as pip does: a `#` begins one at the line's start or after a blank; elsewhere
/// it belongs to a URL.
std::string_view without_comment(std::string_view line) {
  for (std::size_t i = 0; i < line.size(); ++i)
    if (line[i] == '#' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t'))
      return line.substr(0, i);
  return line;
}

/// Returns the argument of an option written as `-r FILE`, `-rFILE`, `--requirement FILE` or
/// `--requirement=FILE`.
std::optional<std::string_view> argument_of(std::string_view line, std::string_view short_name,
                                            std::string_view long_name) {
  if (line.starts_with(long_name)) {
    const auto rest = line.substr(long_name.size());
    if (rest.starts_with('=')) return trim(rest.substr(1));
    if (rest.starts_with(' ') || rest.starts_with('\t')) return trim(rest);
    return std::nullopt;
  }
  if (line.starts_with(short_name)) return trim(line.substr(short_name.size()));
  return std::nullopt;
}

class RequirementsReader {
 public:
  RequirementsReader(core::Span place, settings::Diagnostics& diagnostics,
                     std::set<fs::path>& sources)
      : place_(place), diagnostics_(diagnostics), sources_(sources) {}

  void read(const fs::path& file, const std::string& name) {
    if (!seen_.insert(file.lexically_normal()).second) return;
    sources_.insert(file.lexically_normal());
    std::ifstream stream(file, std::ios::binary);
    if (!fs::is_regular_file(file) || !stream) {
      settings::report(diagnostics_, "missing-file",
                       "the requirements file '" + name + "' " +
                           (fs::exists(file) ? "is not a file that can be read" : "does not exist"),
                       place_, {"looked for " + file.lexically_normal().string()});
      return;
    }
    std::string line, logical;
    for (unsigned number = 1; std::getline(stream, line); ++number) {
      std::string_view part = trim(without_comment(line));
      logical += part;
      if (logical.ends_with('\\')) {
        logical.pop_back();
        continue;
      }
      add(trim(logical), file, name, number);
      logical.clear();
    }
    add(trim(logical), file, name, 0);
  }

  std::vector<std::string> take() { return std::move(lines_); }

 private:
  void add(std::string_view line, const fs::path& file, const std::string& name, unsigned number) {
    if (line.empty()) return;
    const std::string where = name + ":" + std::to_string(number);
    for (const auto& [short_name, long_name] :
         {std::pair{"-r", "--requirement"}, std::pair{"-c", "--constraint"}}) {
      const auto included = argument_of(line, short_name, long_name);
      if (!included) continue;
      if (included->find("://") != std::string_view::npos)
        return refuse(where, line,
                      "list the requirements here: an address may serve something else tomorrow");
      read(file.parent_path() / *included,
           (fs::path(name).parent_path() / *included).generic_string());
      return;
    }
    if (argument_of(line, "-e", "--editable") || line.starts_with('.') || line.starts_with('/') ||
        line.find("file:") != std::string_view::npos)
      return refuse(where, line,
                    "a local project is no part of an image's requirements: install it with "
                    "`local_project_install_command: pip install .`");
    if (line.starts_with("-i "))
      line.remove_prefix(3), lines_.push_back("--index-url " + std::string(trim(line)));
    else if (line.starts_with("-f "))
      line.remove_prefix(3), lines_.push_back("--find-links " + std::string(trim(line)));
    else if (!settings::formats::requirement.accepts(line))
      return refuse(where, line,
                    std::string("expected: ") + settings::formats::requirement.expected);
    else if (std::find(lines_.begin(), lines_.end(), line) == lines_.end())
      lines_.emplace_back(line);
  }

  void refuse(const std::string& where, std::string_view line, std::string note) {
    std::string shown(line.substr(0, 100));
    std::replace_if(
        shown.begin(), shown.end(),
        [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
    settings::report(diagnostics_, "bad-requirement", where + ": '" + shown + "' cannot be used",
                     place_, {std::move(note)});
  }

  core::Span place_;
  settings::Diagnostics& diagnostics_;
  std::set<fs::path>& sources_;
  std::set<fs::path> seen_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> read_requirements(const fs::path& file, const std::string& name,
                                           core::Span place, settings::Diagnostics& diagnostics,
                                           std::set<fs::path>& sources) {
  RequirementsReader reader(place, diagnostics, sources);
  reader.read(file, name);
  return reader.take();
}

}  // namespace pipeline::spec
