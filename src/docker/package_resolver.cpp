#include "docker/package_resolver.hpp"

#include <algorithm>
#include <array>
#include <random>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/identifier.hpp"
#include "core/quantity.hpp"
#include "core/text.hpp"
#include "docker/build_log.hpp"
#include "docker/context.hpp"
#include "docker/index_config.hpp"
#include "docker/short_container.hpp"
#include "templates/templates.hpp"

namespace pipeline::docker {
namespace {

using nlohmann::json;

constexpr std::string_view marker = "pipe-lock: ", unlocked_marker = "pipe-unlocked: ",
                           apt_marker = "pipe-apt: ";
constexpr std::size_t max_shown_lines = 20;
/// Folder in the container that contains the folders of a build's scripts; see
/// templates/image/common.sh.
constexpr auto base = "pipe-lock";

/// Returns the body of POST /containers/create for the resolver's container.
json body_of(const Resolution& resolution) {
  const auto& plan = resolution.plan;
  json body;
  body["Image"] = resolution.image_id;
  body["Entrypoint"] = {"/bin/sh", std::string("/") + base + "/lock/resolve.sh",
                        plan.python.installer};
  body["Cmd"] = json::array();
  body["User"] = "0:0";
  body["WorkingDir"] = "/";
  body["Labels"] = resolution.labels;
  for (const auto& [name, value] : plan.python.environment)
    body["Env"].push_back(name + "=" + value);
  auto& host = body["HostConfig"];
  host["Mounts"] = json::array({{{"Type", "volume"},
                                 {"Source", cache_volume},
                                 {"Target", std::string("/") + base + "/cache"},
                                 {"VolumeOptions", {{"Labels", {{"pipe.cache", "lock"}}}}}}});
  if (plan.options.network) host["NetworkMode"] = *plan.options.network;
  if (plan.options.extra_hosts.has_value()) host["ExtraHosts"] = plan.options.extra_hosts.items();
  return body;
}

}  // namespace

std::vector<ContextFile> resolution_files(const Resolution& resolution) {
  const auto& plan = resolution.plan;
  const auto script = [&](const char* name) {
    return templates::template_text("image/common.sh", resolution.template_dir) +
           templates::template_text(name, resolution.template_dir);
  };
  std::vector<ContextFile> files;
  files.push_back(text_file("lock/resolve.sh", script("lock/resolve.sh")));
  files.push_back(text_file("lock/resolve.py",
                            templates::template_text("lock/resolve.py", resolution.template_dir)));
  files.push_back(text_file("fetch/fetch.sh", script("image/tools.sh")));
  for (const auto* name : {"lock/install_locked.py", "image/tools.txt"})
    files.push_back(text_file("fetch/" + std::filesystem::path(name).filename().string(),
                              templates::template_text(name, resolution.template_dir)));
  constexpr bool is_empty = false;  // The image's packages stay.
  files.push_back(
      text_file("lock/request.json", resolution_request(plan.python.arguments, resolution.preferred,
                                                        resolution.refresh, is_empty)));
  const auto add_lines = [&](const char* name, const std::vector<std::string>& lines) {
    std::string text;
    for (const auto& line : lines) text += line + "\n";
    if (!text.empty()) files.push_back(text_file(name, text));
  };
  add_lines("lock/requirements.txt", plan.python.requirements);
  add_lines("lock/constraints.txt", plan.python.constraints);
  if (const auto apt = plan.parts.find("apt_packages"); apt != plan.parts.end()) {
    auto names = apt->second;
    for (auto& name : names) name = name.substr(0, name.find_first_of("=/"));
    add_lines("lock/apt_packages", names);
  }
  if (!plan.python.pyproject.empty())
    files.push_back(text_file("lock/pyproject.toml", plan.python.pyproject));
  std::vector<std::string> notices;  // Dropped: the plan has the same ones.
  const auto& from = plan.parent ? plan.parent->images_used : plan.images_used;
  for (auto& file : host_files(config_for_build(this_machine(), from, notices)))
    files.push_back(std::move(file));
  const std::string folder = "lock/files";
  files.push_back({.path = folder, .mode = 0755, .kind = ContextFile::Kind::directory});
  for (const auto& line : plan.python.requirements)
    if (const auto path = python_packages::local_path(line, resolution.root))
      for (auto& file : local_files(*path, resolution.root, resolution.state)) {
        file.path = folder + "/" + file.path;
        files.push_back(std::move(file));
      }
  return files;
}

namespace {

std::vector<std::string> last_lines(const std::string& printed) {
  std::vector<std::string> lines;
  for (const auto line : core::split(printed, '\n'))
    if (const auto text = core::trimmed(line, "\r\n"); !text.empty() && progress_of(text).empty())
      lines.push_back(core::printable(text));
  if (lines.size() > max_shown_lines)
    lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(max_shown_lines));
  return lines;
}

/// Reads a package of the resolver's output. Throws EnvironmentError if it cannot be locked.
lockfile::LockedPackage read_package(const json& from) {
  lockfile::LockedPackage package;
  package.name = lockfile::normalised_name(from.at("name").get<std::string>());
  package.version = from.at("version").get<std::string>();
  package.file = from.value("file", std::string());
  package.size = from.value("size", std::uint64_t{0});
  package.sha256 = from.value("sha256", std::string());
  package.url = from.value("url", std::string());
  package.required_by = from.value("required_by", std::vector<std::string>());
  const auto origin = from.value("origin", std::string("index"));
  package.origin = origin == "url"          ? lockfile::PackageOrigin::url
                   : origin == "repository" ? lockfile::PackageOrigin::repository
                   : origin == "path"       ? lockfile::PackageOrigin::path
                                            : lockfile::PackageOrigin::index;
  // An index can send anything, but the lock file has to be readable.
  for (const auto& [key, why] : lockfile::faults_of(package))
    throw core::EnvironmentError("the index's answer about '" + core::printable(package.name) +
                                     "' cannot be locked: " + core::printable(why),
                                 {"look at its page of that package, or name another index"});
  return package;
}

/// Replaces an age in `--exclude-newer` by the moment that lies so far in the past, because uv
/// before 0.9.17 knows no ages.
std::vector<std::string> with_moments(std::vector<std::string> arguments) {
  constexpr std::string_view option = "--exclude-newer=";
  for (auto& argument : arguments) {
    if (!argument.starts_with(option)) continue;
    const auto age = core::parse_duration(std::string_view(argument).substr(option.size()));
    if (!age) continue;
    auto moment = core::format_time(
        std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now()) -
        std::chrono::milliseconds(*age));
    std::ranges::replace(moment, ' ', 'T');
    argument = option;
    argument += moment;
  }
  return arguments;
}

/// Returns the reason of a failed resolution. Other failures, such as an unknown option, no
/// compiler or no network, are explained by what was printed.
std::string resolution_failure(const std::string& printed) {
  constexpr std::array unsatisfied{"No solution found", "ResolutionImpossible",
                                   "No matching distribution found"};
  const auto is_printed = [&](const char* text) { return printed.find(text) != printed.npos; };
  return std::ranges::any_of(unsatisfied, is_printed) ? "no versions satisfy them"
                                                      : "the installer has failed";
}

}  // namespace

std::string resolution_request(const std::vector<std::string>& arguments,
                               const lockfile::LockedEnvironment& preferred, bool refresh,
                               bool is_empty, const std::filesystem::path& root) {
  json request{{"arguments", with_moments(arguments)},
               {"refresh", refresh},
               {"is_empty", is_empty},
               {"requirements", preferred.requirements},
               {"preferred", json::object()},
               {"sizes", json::object()}};
  if (!root.empty()) request["root"] = root.string();
  for (const auto& package : preferred.packages) {
    if (package.origin == lockfile::PackageOrigin::index)
      request["preferred"][package.name] = package.version;
    if (package.size > 0) request["sizes"][package.sha256] = package.size;
  }
  return request.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string_view progress_of(std::string_view line) {
  constexpr std::string_view progress_marker = "pipe-progress: ";
  if (!line.starts_with(progress_marker)) return {};
  return core::trimmed(line.substr(progress_marker.size()), "\r\n");
}

std::optional<lockfile::LockedEnvironment> read_resolution(const std::string& printed) {
  if (const auto at = printed.find(unlocked_marker); at != printed.npos)
    throw CannotResolve(std::string(core::trimmed(
        core::split(std::string_view(printed).substr(at + unlocked_marker.size()), '\n')[0],
        "\r")));
  auto at = printed.rfind(marker);
  if (at == printed.npos) return std::nullopt;
  at += marker.size();
  const auto found = core::parse_json(printed.substr(at, printed.find('\n', at) - at));
  lockfile::LockedEnvironment environment;
  try {
    environment.python = found.at("python").get<std::string>();
    environment.tag = found.at("tag").get<std::string>();
    environment.platform = found.at("platform").get<std::string>();
    for (const auto& package : found.at("packages"))
      environment.packages.push_back(read_package(package));
    for (const auto line : core::split(printed, '\n'))
      if (line.starts_with(apt_marker))
        environment.apt_packages.emplace_back(core::trimmed(line.substr(apt_marker.size()), "\r"));
    std::ranges::sort(environment.apt_packages);
  } catch (const json::exception& error) {
    throw core::EnvironmentError(std::string("the resolver's output cannot be read: ") +
                                 error.what());
  }
  return environment;
}

core::BuildError failed_script(const std::string& what, std::string reason,
                               const std::string& printed) {
  std::vector<std::string> details, advice;
  for (const auto& line : last_lines(printed))
    if (line.starts_with("pipe: error: "))
      reason = line.substr(13);
    else if (line.starts_with("pipe: hint: "))
      advice.push_back(line.substr(12));
    else
      details.push_back(line);
  for (auto& more : build_advice(details, {})) advice.push_back(std::move(more));
  return core::BuildError(what + ": " + reason, std::move(details), std::move(advice));
}

lockfile::LockedEnvironment finished_resolution(const ImagePlan& plan, bool succeeded,
                                                const std::string& printed) {
  auto environment = succeeded ? read_resolution(printed) : std::nullopt;
  if (!environment)
    throw failed_script("cannot resolve the requirements for " + plan.parent_image,
                        resolution_failure(printed), printed);
  if (const auto found = plan.parts.find("apt_snapshot"); found != plan.parts.end())
    environment->apt_snapshot = found->second.front();
  return std::move(*environment);
}

std::string resolution_title(const ImagePlan& plan) {
  return "resolving " + core::counted(plan.python.requirements.size(), "requirement") + " with " +
         plan.python.installer;
}

async::Task<lockfile::LockedEnvironment> resolve_packages(
    EngineApi& engine, Resolution resolution, std::function<void(const std::string&)> on_line,
    core::CancelSource& cancel) {
  // The builders of two orchestrators may resolve the same requirements at once.
  const auto name =
      "pipe-" + resolution.labels["pipe.run"] + "-lock-" + std::to_string(std::random_device()());
  on_line(resolution_title(resolution.plan));
  auto files = resolution_files(resolution);
  for (auto& file : files) file.path = std::string(base) + "/" + file.path;
  const std::function<void(std::string_view)> follow = [&](std::string_view line) {
    if (const auto progress = progress_of(line); !progress.empty())
      on_line(core::printable(progress));
  };
  const auto output = co_await run_to_end(engine, name, body_of(resolution), std::move(files),
                                          resolution.plan.platform, &cancel, follow);
  co_return finished_resolution(resolution.plan, output.exit_code == 0, output.text);
}

}  // namespace pipeline::docker
