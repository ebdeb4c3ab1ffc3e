#include "python_packages/requirements.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <set>
#include <sstream>

#include <sys/wait.h>

#include <nlohmann/json.hpp>

#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"
#include "core/project.hpp"
#include "python_packages/unknown_requirements.hpp"

namespace pipeline::python_packages {

namespace {

const std::string unknown_mark = "# not known until it runs: ";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (!line.empty() && line.front() != '#') lines.push_back(line);
  }
  return lines;
}

/// Joins continued lines: `uv export` puts each `--hash` on a line of its own.
std::string joined(std::string text) {
  for (auto at = text.find("\\\n"); at != text.npos; at = text.find("\\\n", at))
    text.replace(at, 2, " ");
  return text;
}

}  // namespace

std::string output_of(const std::vector<std::string>& command,
                      const std::filesystem::path& folder) {
  core::TemporaryFolder scratch;
  auto out = scratch.path() / "out", err = scratch.path() / "err";
  core::make_folders(scratch.path() / "work");
  const auto work = folder.empty() ? scratch.path() / "work" : folder;
  std::string line = folder.empty() ? "unset PYTHONPATH PYTHONHOME PYTHONSTARTUP; " : "";
  line += "cd " + core::shell_quote(work.string()) + " && exec";
  for (auto& word : command) line += " " + core::shell_quote(word);
  line = "( " + line + " ) </dev/null >" + core::shell_quote(out.string()) + " 2>" +
         core::shell_quote(err.string());
  int status = std::system(line.c_str());
  if (status == 0) return core::read_file(out);
  auto printed = lines_of(core::read_file(err));
  std::vector<std::string> advice(printed.size() > 10 ? printed.end() - 10 : printed.begin(),
                                  printed.end());
  throw core::EnvironmentError(
      "`" + command.front() + "`" + (command.size() > 1 ? " " + command[1] : "") +
          (folder.empty() ? "" : " in " + folder.string()) + " failed with exit code " +
          std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)),
      advice);
}

std::vector<std::string> portable_freeze(const std::string& printed,
                                         std::vector<std::string>& notices) {
  std::vector<std::string> kept;
  for (auto& line : lines_of(printed)) {
    bool local = line.starts_with("-e ") || line.find("@ file:") != line.npos;
    if (local)
      notices.push_back(
          "replicate_local_python_environment leaves out `" + line +
          "`: it is only on this machine; install it with local_project_install_command");
    else
      kept.push_back(line);
  }
  return kept;
}

std::vector<std::string> requirement_lines(const DockerSettings& settings,
                                           const std::filesystem::path& root,
                                           std::vector<std::string>& notices) {
  std::vector<std::string> options;
  std::set<std::string> requirements;
  auto add = [&](const std::vector<std::string>& lines) {
    for (auto& line : lines) {
      if (core::has_control_characters(line))
        throw core::InputError("a Python requirement holds a control character: `" +
                               line.substr(0, 40) + "`");
      if (!line.starts_with('-'))
        requirements.insert(line);
      else if (std::ranges::find(options, line) == options.end())
        options.push_back(line);
    }
  };
  add(settings.requirements.items());
  if (settings.replicate_local_python_environment.value_or(false) && !core::only_looks())
    add(portable_freeze(
        output_of({std::getenv("VIRTUAL_ENV") ? "python" : "python3", "-m", "pip", "freeze"}, {}),
        notices));
  if (settings.pyproject_path && settings.pyproject_export_command.has_value() &&
      !core::only_looks()) {
    auto project = (root / *settings.pyproject_path).parent_path();
    std::vector<std::string> exported;
    for (auto& line :
         lines_of(joined(output_of(settings.pyproject_export_command.items(), project)))) {
      if (line.starts_with("-e ") || line.starts_with("."))
        notices.push_back(
            "pyproject_export_command printed `" + line +
            "`, which is left out: install the project itself with local_project_install_command");
      else
        exported.push_back(line);
    }
    add(exported);
  }
  options.insert(options.end(), requirements.begin(), requirements.end());
  return options;
}

/// Returns why a program has to run before all requirements are known; empty if none has to.
static std::string reason_to_run(const DockerSettings& settings) {
  const auto& exporting = settings.pyproject_export_command;
  if (settings.pyproject_path && exporting.has_value() && !exporting.items().empty())
    return "`" + core::printable(exporting.items().front()) + "` says which packages";
  return settings.replicate_local_python_environment.value_or(false)
             ? "`pip freeze` says which packages"
             : "";
}

void mark_unknown(PythonRequirements& python, const std::string& why) {
  python.requirements.push_back(unknown_mark + why);
}

std::string unknown_reason(const PythonRequirements& python) {
  for (const auto& line : python.requirements)
    if (line.starts_with(unknown_mark)) return line.substr(unknown_mark.size());
  return {};
}

PythonRequirements python_requirements(const DockerSettings& settings,
                                       const std::filesystem::path& root,
                                       std::vector<std::string>& notices) {
  PythonRequirements python;
  if (const auto why = reason_to_run(settings); core::only_looks() && !why.empty())
    mark_unknown(python, why);
  constexpr std::string_view constraint = "--constraint ";
  for (auto& line : requirement_lines(settings, root, notices))
    if (line.starts_with(constraint))
      python.constraints.push_back(line.substr(constraint.size()));
    else if (line.starts_with("-e "))  // A copy is installed: later edits must not change a step.
      python.requirements.push_back(line.substr(3));
    else
      python.requirements.push_back(std::move(line));
  if (settings.pyproject_path && !settings.pyproject_export_command.has_value())
    python.pyproject = core::read_file(root / *settings.pyproject_path);
  for (auto& argument : installer_arguments(settings.python_package_installer_args)) {
    // A folder of packages below `root` becomes a line of the requirements, so that its files are
    // copied into the build. An absolute path may be one of the image.
    auto line = argument;
    if (line.starts_with("--find-links=")) line.replace(line.find('='), 1, " ");
    const bool may_be_folder = is_index_option(line) && !python.empty();
    const auto path = may_be_folder ? local_path(line, root) : std::nullopt;
    if (path && !path->starts_with('/'))
      python.requirements.insert(python.requirements.begin(), std::move(line));
    else
      python.arguments.push_back(std::move(argument));
  }
  const auto installer = settings.python_package_installer.value_or(PackageInstaller::uv);
  python.installer = installer == PackageInstaller::uv ? "uv" : "pip";
  python.environment = settings.environment;
  return python;
}

std::optional<std::string> local_path(const std::string& requirement_line,
                                      const std::filesystem::path& root) {
  auto path = requirement_line;
  constexpr std::string_view links = "--find-links ";
  if (path.starts_with(links)) path.erase(0, links.size());
  path = path.substr(0, path.find_first_of(";["));
  if (const auto at = path.find("@ "); at != path.npos) path.erase(0, at + 2);
  while (path.ends_with(' ')) path.pop_back();
  const bool is_archive =
      path.ends_with(".whl") || path.ends_with(".tar.gz") || path.ends_with(".zip");
  std::error_code error;
  if (path.find("://") != path.npos || (path.find('/') == path.npos && !is_archive) ||
      !std::filesystem::exists(root / path, error))
    return std::nullopt;
  return path;
}

std::vector<std::string> install_options(const PythonRequirements& python,
                                         const std::filesystem::path& root) {
  std::vector<std::string> options;
  std::ranges::copy_if(python.requirements, std::back_inserter(options), [&](const auto& line) {
    return is_index_option(line) && !local_path(line, root);
  });
  return options;
}

bool is_index_option(const std::string& requirement_line) {
  constexpr std::array options{
      "-i",           "--index-url", "--extra-index-url", "--no-index",    "-f",
      "--find-links", "--no-binary", "--only-binary",     "--trusted-host"};
  const auto name = requirement_line.substr(0, requirement_line.find_first_of(" ="));
  return std::ranges::find(options, name) != options.end();
}

bool resolves(const std::vector<std::string>& requirement_lines) {
  return std::ranges::any_of(requirement_lines, [](const std::string& line) {
    if (line.starts_with("-r") || line.starts_with("--requirement") || line.starts_with("-e") ||
        line.starts_with("--editable"))
      return true;
    if (line.starts_with('-')) return false;
    const auto requirement = std::string_view(line).substr(0, line.find_first_of(";#"));
    const auto equal = requirement.find("==");
    return equal == requirement.npos ||
           requirement.substr(0, equal).find('@') != requirement.npos ||
           requirement.find('*') != requirement.npos;
  });
}

std::vector<std::string> install_arguments(const std::vector<std::string>& arguments) {
  constexpr std::array choosing_versions{
      "--extra",      "--all-extras",      "--no-extra",         "--group",
      "--only-group", "--no-group",        "--all-groups",       "--no-deps",
      "--override",   "--overrides",       "--constraint",       "--constraints",
      "--pre",        "--prerelease",      "--resolution",       "--exclude-newer",
      "--upgrade",    "--upgrade-package", "--upgrade-strategy", "--fork-strategy"};
  std::vector<std::string> kept;
  std::ranges::copy_if(arguments, std::back_inserter(kept), [&](const std::string& argument) {
    return std::ranges::find(choosing_versions, argument.substr(0, argument.find('='))) ==
           choosing_versions.end();
  });
  return kept;
}

std::vector<std::string> installer_arguments(const std::map<std::string, Json>& options) {
  std::vector<std::string> arguments;
  for (auto& [name, value] : options) {
    auto option = name.starts_with("-") ? name : "--" + name;
    if (core::has_control_characters(option) || option.find(' ') != option.npos)
      throw core::InputError("python_package_installer_args: '" + name +
                             "' is not an option's name");
    auto add = [&](const nlohmann::json& item) {
      if (item.is_boolean() || item.is_null()) {
        if (!item.is_boolean() || item.get<bool>()) arguments.push_back(option);
        return;
      }
      auto text = item.is_string() ? item.get<std::string>() : item.dump();
      if (core::has_control_characters(text))
        throw core::InputError("python_package_installer_args: the value of '" + name +
                               "' holds a control character");
      arguments.push_back(option + "=" + text);
    };
    if (value->is_array())
      for (auto& item : *value) add(item);
    else
      add(*value);
  }
  return arguments;
}

}  // namespace pipeline::python_packages
