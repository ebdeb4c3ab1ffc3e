#include "orchestrators/processes/requirement_files.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>

#include "core/address.hpp"
#include "core/file.hpp"
#include "python_packages/unknown_requirements.hpp"

namespace pipeline::orchestrators::processes {
namespace {

namespace fs = std::filesystem;

constexpr auto requirements_file = "requirements.txt", constraints_file = "constraints.txt";

/// Returns the path relative to the folder that uv and pip work in, which has the link `root_link`
/// to the pipeline's folder. Paths that leave the pipeline's folder become absolute.
fs::path seen_from_work(const fs::path& path, const fs::path& root) {
  if (path.is_absolute()) return path;
  const auto normal = path.lexically_normal();
  return *normal.begin() == ".." ? (root / path).lexically_normal() : "." / (root_link / normal);
}

/// Returns a line of a requirements file, or an option, with its path relative to that folder.
std::string seen_from_work(const std::string& line, const fs::path& root) {
  constexpr std::array path_options{
      "--find-links ",  "--override=",    "--overrides=",       "--constraint=",
      "--constraints=", "--requirement=", "--requirements=",    "--cert=",
      "--client-cert=", "--find-links=",  "--build-constraint="};
  if (line.starts_with("--group=") && line.find(':') == line.npos)
    return "--group=" + seen_from_work(fs::path("pyproject.toml"), root).string() + ":" +
           line.substr(8);
  std::size_t begin = 0;
  for (const std::string_view option : path_options)
    if (line.starts_with(option)) begin = option.size();
  const bool is_option = begin > 0;
  if (const auto at = line.find("@ "); !is_option && at != line.npos) begin = at + 2;
  const auto end = std::min(line.find_first_of(is_option ? "" : " ;[", begin), line.size());
  const auto path = line.substr(begin, end - begin);
  std::error_code error;
  const bool is_path = is_option ? fs::exists(root / path, error)
                                 : python_packages::local_path(path, root).has_value();
  if (!is_path) return line;
  return line.substr(0, begin) + seen_from_work(fs::path(path), root).string() + line.substr(end);
}

void write_lines(const fs::path& file, const std::vector<std::string>& lines,
                 const fs::path& root) {
  std::string text;
  for (const auto& line : lines) text += seen_from_work(line, root) + "\n";
  core::write_file_atomically(file, text);
}

}  // namespace

std::vector<std::string> arguments_of(const EnvironmentPlan& plan, const fs::path& root) {
  auto arguments =
      plan.locked ? python_packages::install_arguments(plan.asked.arguments) : plan.asked.arguments;
  for (auto& argument : arguments) argument = seen_from_work(argument, root);
  return arguments;
}

std::vector<fs::path> write_requirements(const fs::path& folder,
                                         const python_packages::PythonRequirements& asked,
                                         const fs::path& root) {
  std::vector<fs::path> files;
  if (!asked.pyproject.empty())
    core::write_file_atomically(files.emplace_back(folder / project_file), asked.pyproject);
  if (!asked.requirements.empty())
    write_lines(files.emplace_back(folder / requirements_file), asked.requirements, root);
  if (!asked.constraints.empty()) write_lines(folder / constraints_file, asked.constraints, root);
  return files;
}

void add_constraints(std::vector<std::string>& install, const EnvironmentPlan& plan,
                     const fs::path& folder) {
  // Locked versions satisfy the constraints already.
  if (!plan.locked && !plan.asked.constraints.empty())
    install.insert(install.end(), {"--constraint", (folder / constraints_file).string()});
}

std::vector<fs::path> requirement_files(const EnvironmentPlan& plan, const fs::path& folder,
                                        const fs::path& root) {
  if (!plan.locked) return write_requirements(folder, plan.asked, root);
  const auto options = python_packages::install_options(plan.asked, root);
  std::vector<fs::path> files;
  for (const bool has_hash : {true, false}) {
    lockfile::LockedEnvironment part;
    std::ranges::copy_if(plan.locked->packages, std::back_inserter(part.packages),
                         [&](const auto& package) { return package.sha256.empty() != has_hash; });
    if (part.packages.empty()) continue;
    auto lines = options;
    std::ranges::move(lockfile::install_lines(part), std::back_inserter(lines));
    write_lines(files.emplace_back(folder / (has_hash ? "locked.txt" : "without-hash.txt")), lines,
                root);
  }
  return files;
}

std::string unknown_to_look(const python_packages::PythonRequirements& asked) {
  constexpr std::array allowed{
      "--extra",      "--all-extras",    "--no-extra",      "--no-deps",       "--override",
      "--overrides",  "--constraint",    "--constraints",   "--pre",           "--prerelease",
      "--resolution", "--exclude-newer", "--no-index",      "--index-url",     "--extra-index-url",
      "--find-links", "--index",         "--default-index", "--index-strategy"};
  if (auto unknown = python_packages::unknown_reason(asked); !unknown.empty()) return unknown;
  for (const auto& argument : asked.arguments)
    if (std::ranges::find(allowed, argument.substr(0, argument.find('='))) == allowed.end())
      return "the installer has the option " + argument.substr(0, argument.find('='));
  for (const auto& line : asked.requirements) {
    const auto path = line.substr(0, line.find_first_of(" ;[#"));
    if (line.starts_with('-') || line.find_first_of("/@") == line.npos) continue;
    if (line.find(".whl") == line.npos || line.find("git+") != line.npos)
      return path + " is built to say what it requires";
  }
  if (asked.pyproject.find("[tool.") != std::string::npos)
    return "pyproject.toml has a table of tools";
  return {};
}

void move_logins(std::vector<std::string>& arguments, StringMap& variables) {
  constexpr std::array options{
      "--index-url=", "--extra-index-url=", "--default-index=", "--index=", "--find-links="};
  StringMap moved;
  std::erase_if(arguments, [&](const std::string& argument) {
    const auto option = std::ranges::find_if(
        options, [&](std::string_view each) { return argument.starts_with(each); });
    if (option == options.end() || core::without_credentials(argument) == argument) return false;
    std::string name(*option + 2);
    name.pop_back();
    for (char& c : name) c = c == '-' ? '_' : static_cast<char>(std::toupper(c));
    for (const std::string installer : {"PIP_", "UV_"}) {
      auto& value = moved[installer + name];
      value += (value.empty() ? "" : " ") + argument.substr(std::string_view(*option).size());
    }
    return true;
  });
  for (auto& [name, value] : moved) variables[name] = std::move(value);
}

}  // namespace pipeline::orchestrators::processes
