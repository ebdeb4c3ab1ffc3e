#include "core/project.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "core/user_environment.hpp"

namespace pipeline::core {
namespace {

namespace fs = std::filesystem;

struct Project {
  std::vector<fs::path> folders;
  std::vector<fs::path> homes;  ///< Folders whose programs and settings are the user's own.
  Purpose purpose = Purpose::run;
  std::function<std::vector<std::string>()> servers = {};
};

Project& project() {
  static Project only;
  return only;
}

fs::path real_path(const fs::path& file) {
  std::error_code error;
  auto real = fs::weakly_canonical(fs::absolute(file, error), error);
  return error ? file.lexically_normal() : real;
}

bool is_below(const fs::path& file, const fs::path& folder) {
  return std::ranges::mismatch(folder, file).in1 == folder.end();
}

/// Returns the nearest folder with a repository, from `folder` up to below the home folder and the
/// folders above it; without a repository, `folder` itself.
fs::path project_of(const fs::path& folder) {
  const auto home = real_path(variable("HOME"));
  std::error_code ignored;
  for (auto above = folder; !is_below(home, above); above = above.parent_path())
    if (above == above.parent_path() || fs::exists(above / ".git", ignored))
      return above == above.parent_path() ? folder : above;
  return folder;
}

bool is_below_any(const fs::path& file, const std::vector<fs::path>& folders) {
  return std::ranges::any_of(folders, [&](const auto& folder) { return is_below(file, folder); });
}

/// The variables by which interpreters find modules and code to run.
constexpr std::array code_variables{
    "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PERL5LIB", "PERL5OPT", "RUBYLIB",
    "RUBYOPT",    "NODE_PATH",  "NODE_OPTIONS",  "BASH_ENV", "ENV"};
constexpr std::array folder_variables{"PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT"};

/// Returns the list without the entries that are in the project, and without relative ones, which
/// are below the working folder.
std::string without_project(std::string_view list, std::string_view separators) {
  std::string kept;
  for (std::size_t begin = 0; begin <= list.size();) {
    const auto end = std::min(list.find_first_of(separators, begin), list.size());
    const auto entry = list.substr(begin, end - begin);
    begin = end + 1;
    if (!entry.starts_with('/') || is_in_project(entry)) continue;
    kept += (kept.empty() ? "" : ":") + std::string(entry);
  }
  return kept;
}

bool is_program(const fs::path& file) {
  struct stat info {};
  return ::stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         ::access(file.c_str(), X_OK) == 0;
}

}  // namespace

void set_project(const fs::path& folder, Purpose purpose,
                 std::function<std::vector<std::string>()> servers) {
  project() = {{}, {}, purpose, std::move(servers)};
  const auto home = real_path(variable("HOME"));
  std::error_code ignored;
  for (const auto& each : {folder, fs::current_path(ignored)})
    if (const auto found = project_of(real_path(each)); found == home || !is_below(home, found))
      (found == home ? project().homes : project().folders).push_back(found);
}

bool is_named_server(const std::string& url) {
  if (project().folders.empty() || !project().servers) return true;
  static const auto named = project().servers();
  const auto is_same = [&](std::string_view other) {
    return !other.empty() && trimmed(other, "/") == trimmed(url, "/");
  };
  return std::ranges::any_of(named, is_same);
}

bool only_looks() { return project().purpose == Purpose::look; }

bool is_in_project(const fs::path& file) {
  std::error_code error;
  const auto& folders = project().folders;
  return is_below_any(fs::absolute(file, error).lexically_normal(), folders) ||
         is_below_any(real_path(file), folders) ||
         is_below_any(real_path(file.parent_path()) / file.filename(), folders);
}

bool is_outside_project(const fs::path& file) {
  const auto& [folders, homes, purpose, servers] = project();
  if (file.empty() || (folders.empty() && homes.empty())) return false;
  const auto real = real_path(file);
  return !is_below_any(real, folders) && !is_below_any(real, homes);
}

std::vector<std::string> tool_environment(const std::vector<std::string>& own) {
  auto all = own;
  for (char** variable = environ; *variable; ++variable) {
    const std::string_view text = *variable;
    const auto name = text.substr(0, text.find('='));
    const auto is_own = [&](const auto& each) {
      return each.starts_with(name) && each.substr(name.size()).starts_with('=');
    };
    if (std::ranges::any_of(own, is_own) ||
        std::ranges::find(code_variables, name) != code_variables.end())
      continue;
    if (only_looks() && std::ranges::find(folder_variables, name) != folder_variables.end())
      all.push_back(std::string(name) + "=" +
                    without_project(text.substr(std::min(name.size() + 1, text.size())),
                                    name == "LD_PRELOAD" ? ": " : ":"));
    else
      all.emplace_back(text);
  }
  return all;
}

std::string tool_path() {
  auto path = variable("PATH");
  if (path.empty()) path = "/usr/local/bin:/usr/bin:/bin";
  return only_looks() ? without_project(path, ":") : path;
}

fs::path find_tool(const std::string& name) {
  if (name.find('/') != name.npos) {
    if (only_looks() && is_in_project(name))
      throw EnvironmentError(name +
                             " is in the project, and a command that only looks does not run it");
    return is_program(name) ? fs::path(name) : fs::path();
  }
  const auto path = tool_path();
  for (const auto folder : split(path, ':')) {
    auto file = fs::path(folder) / name;
    if (!is_program(file) || (only_looks() && is_in_project(file))) continue;
    return file;
  }
  return {};
}

}  // namespace pipeline::core
