#include "spec/requirements_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "core/file.hpp"
#include "core/project.hpp"
#include "core/text.hpp"
#include "core/utf8.hpp"
#include "settings/decode.hpp"

namespace pipeline::spec {
namespace {

namespace fs = std::filesystem;

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
    if (rest.starts_with('=')) return core::trimmed(rest.substr(1));
    if (rest.starts_with(' ') || rest.starts_with('\t')) return core::trimmed(rest);
    return std::nullopt;
  }
  if (line.starts_with(short_name)) return core::trimmed(line.substr(short_name.size()));
  return std::nullopt;
}

class RequirementsReader {
 public:
  RequirementsReader(core::Span place, settings::Diagnostics& diagnostics,
                     std::set<fs::path>& sources)
      : place_(place), diagnostics_(diagnostics), sources_(sources) {}

  /// The lines of a file: packages to install, or limits for the versions of such packages.
  enum class Content { requirements, constraints };

  void read(const fs::path& file, const std::string& name, Content content) {
    if (!seen_.insert({file.lexically_normal(), content}).second) return;
    sources_.insert(file.lexically_normal());
    std::error_code error;
    if (!fs::is_regular_file(file, error) || ::access(file.c_str(), R_OK) != 0) {
      settings::report(
          diagnostics_, "missing-file",
          "the requirements file '" + name + "' " +
              (fs::exists(file, error) ? "is not a file that can be read" : "does not exist"),
          place_, {"looked for " + file.lexically_normal().string()});
      return;
    }
    const auto text = core::read_file(file);
    if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
      settings::report(diagnostics_, "not-utf8", "the requirements file '" + name + "' is UTF-16",
                       place_, {"save it as UTF-8: PowerShell's `>` writes UTF-16"});
      return;
    }
    std::istringstream stream(std::string(core::without_byte_order_mark(text)));
    std::string line, logical;
    for (unsigned number = 1; std::getline(stream, line); ++number) {
      const auto part = without_comment(line);
      // Blanks before a continuation stay one blank: `six==1.0\` and `  --hash=...`.
      const bool is_apart = part.starts_with(' ') || part.starts_with('\t');
      if (!logical.empty() && is_apart && !logical.ends_with(' ')) logical += ' ';
      logical += core::trimmed(part);
      if (logical.ends_with('\\')) {
        logical.pop_back();
        continue;
      }
      add(core::trimmed(logical), {file, name, number, content});
      logical.clear();
    }
    add(core::trimmed(logical), {file, name, 0, content});
  }

  /// Adds an item of the list `requirements` in a file of the folder.
  void add_item(std::string_view line, const fs::path& folder) {
    add(line, {folder / "requirements", "requirements", 0, Content::requirements});
  }

  std::vector<std::string> take() { return std::move(lines_); }

 private:
  struct Line {
    const fs::path& file;
    const std::string& name;
    unsigned number;  ///< Counted from 1; 0: unknown.
    Content content;
    bool is_constraint() const { return content == Content::constraints; }
    std::string where() const { return number ? name + ":" + std::to_string(number) : name; }
  };

  void add(std::string_view line, const Line& from) {
    if (line.empty()) return;
    if (const auto file = argument_of(line, "-r", "--requirement"))
      return include(line, *file, from, from.content);
    if (const auto file = argument_of(line, "-c", "--constraint")) {
      if (file->find_first_of("<>=~! ") == std::string_view::npos)
        return include(line, *file, from, Content::constraints);
      return keep("--constraint " + std::string(*file));  // Keeps the constraint itself.
    }
    if (argument_of(line, "-e", "--editable") || line.starts_with('.') || line.starts_with('/') ||
        line.find("file:") != std::string_view::npos)
      return add_path(line, from);
    if (const auto index = argument_of(line, "-i", "--index-url"))
      keep("--index-url " + std::string(*index));
    else if (const auto links = argument_of(line, "-f", "--find-links"))
      keep("--find-links " + std::string(*links));
    else if (!settings::formats::requirement.accepts(line))
      return refuse(from, line,
                    std::string("expected: ") + settings::formats::requirement.expected);
    else if (from.is_constraint() && !line.starts_with('-'))
      keep("--constraint " + std::string(line));
    else
      keep(std::string(line));
  }

  void include(std::string_view line, std::string_view file, const Line& from, Content content) {
    if (file.find("://") != std::string_view::npos)
      return refuse(from, line,
                    "list the requirements here: an address may serve something else tomorrow");
    read(from.file.parent_path() / file,
         (fs::path(from.name).parent_path() / file).generic_string(), content);
  }

  /// Adds a path, relative to the pipeline's folder in every file, as with pip's working folder.
  void add_path(std::string_view line, const Line& from) {
    const auto editable = argument_of(line, "-e", "--editable");
    auto path = std::string(editable ? *editable : line);
    if (path == ".") path = "./";
    if (editable && !path.starts_with('.') && !path.starts_with('/')) path.insert(0, "./");
    const auto written = (editable ? "-e " : "") + path;
    if (from.is_constraint() || !settings::formats::requirement.accepts(written))
      return refuse(from, line,
                    from.is_constraint()
                        ? "a constraint limits the versions of a package, and a path has none"
                    : line.find(" --hash") != std::string_view::npos
                        ? "leave out `--hash`: the lock file has the hash of each local file"
                        : "write the path of a wheel or a project below the pipeline's folder: "
                          "./wheels/x.whl, ./project");
    keep(written);
  }

  void keep(std::string line) {
    if (std::find(lines_.begin(), lines_.end(), line) == lines_.end())
      lines_.push_back(std::move(line));
  }

  void refuse(const Line& from, std::string_view line, std::string note) {
    if (core::is_outside_project(from.file)) line = "a line of a file outside of the project";
    std::string shown(line.substr(0, 100));
    std::replace_if(
        shown.begin(), shown.end(),
        [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
    settings::report(diagnostics_, "bad-requirement",
                     from.where() + ": '" + shown + "' cannot be used", place_, {std::move(note)});
  }

  core::Span place_;
  settings::Diagnostics& diagnostics_;
  std::set<fs::path>& sources_;
  std::set<std::pair<fs::path, Content>> seen_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> read_requirements(const fs::path& file, const std::string& name,
                                           core::Span place, settings::Diagnostics& diagnostics,
                                           std::set<fs::path>& sources) {
  RequirementsReader reader(place, diagnostics, sources);
  reader.read(file, name, RequirementsReader::Content::requirements);
  const bool has_version = name.find_first_of("=<>~![") != std::string::npos;
  if (has_version && !fs::exists(file) && settings::formats::requirement.accepts(name))
    diagnostics.back().suggestion = "did you mean `requirements: [" + name + "]`?";
  return reader.take();
}

std::vector<std::string> expand_requirements(const std::vector<std::string>& lines,
                                             const fs::path& folder, core::Span place,
                                             settings::Diagnostics& diagnostics,
                                             std::set<fs::path>& sources) {
  RequirementsReader reader(place, diagnostics, sources);
  for (const auto& line : lines) reader.add_item(line, folder);
  return reader.take();
}

}  // namespace pipeline::spec
