// Profiles as options of commands, and `pipe profiles`, which lists them.
#include "cli/profiles.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "core/file.hpp"
#include "core/project.hpp"
#include "core/user_environment.hpp"
#include "driver/profile_use.hpp"
#include "spec/profile_file.hpp"

namespace pipeline::cli {
namespace {

std::filesystem::path folder_of(const Options& options) {
  // A command about runs takes no file, and is called in a pipeline's folder.
  if (!options.program && !options.takes_file)
    return std::filesystem::absolute(options.file).parent_path();
  return Context(options).pipeline_file().parent_path();
}

/// Commands that may run programs of the project; all other commands only look (core/project.hpp).
constexpr std::array acting{"run",    "build", "lock",   "shell",      "attach", "resume",
                            "cancel", "clean", "verify", "kubernetes", "__drive"};

/// Returns the servers to which credentials may go: those in the environment and in the user's own
/// profiles, the last of profile_files().
std::vector<std::string> named_servers() {
  std::vector<std::string> servers;
  for (const char* name : {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"})
    servers.push_back(core::variable(name));
  const auto candidates = spec::profile_files({});
  const auto own = candidates.size() > 1 ? candidates.back() : std::filesystem::path();
  if (std::error_code error; core::is_in_project(own) || !std::filesystem::exists(own, error))
    return servers;
  for (const auto& [name, profile] : spec::parse_profiles(core::read_file(own), own))
    for (const char* option : {"endpoint", "pod_endpoint"})
      servers.push_back(profile.remote_store.option(option));
  return servers;
}

}  // namespace

void begin_project(const Options& options, const std::string& command) {
  const bool changes_nothing = command == "lock" && (options.lock.frozen || options.lock.dry_run);
  const bool acts = std::ranges::find(acting, command) != acting.end() && !changes_nothing;
  std::error_code error;
  auto folder = options.program ? Context(options).pipeline_file()
                                : std::filesystem::absolute(options.file, error);
  if (!std::filesystem::is_directory(folder, error)) folder = folder.parent_path();
  core::set_project(folder, acts ? core::Purpose::run : core::Purpose::look,
                    command == "__drive" ? nullptr : named_servers);
}

void use_profile(Options& options) {
  if (!options.takes_profile) return;
  // A command about runs needs only the state folder, and may be called in a folder that does not
  // have the profile of $PIPE_PROFILE.
  const bool is_about_runs = !options.takes_file && !options.program;
  driver::ProfileUse use{
      .folder = folder_of(options),
      .is_given = [&](const std::string& option) { return options.given.contains("--" + option); },
      .ignores_unknown = is_about_runs};
  if (is_about_runs)
    use.on_unreadable = [&](const std::string& why) {
      Context(options).note("warning: no profile applies: " + why);
    };
  driver::use_profile(options, use);
}

core::ExitCode profiles_command(Context& context) {
  // Without a pipeline, only the user's own profiles exist.
  std::error_code error;
  const auto& file = context.options().file;
  const auto folder = context.options().program ? context.pipeline_file().parent_path()
                      : std::filesystem::is_directory(file, error)
                          ? file
                          : std::filesystem::absolute(file).parent_path();
  const auto profiles = spec::find_profiles(folder);
  nlohmann::json list = nlohmann::json::array();
  Table table;
  table.add({"PROFILE", "ORCHESTRATOR", "CLUSTER", "REGISTRY", "STATE", "FILE"});
  for (const auto& [name, profile] : profiles) {
    const auto name_space = profile.field("namespace");
    const auto cluster = profile.field("context") + (name_space.empty() ? "" : "/" + name_space);
    const auto registry = profile.settings.docker.target_repository.value_or("");
    table.add({name, profile.orchestrator, for_terminal(cluster), registry,
               for_terminal(shown_path(profile.state)), shown_path(profile.file)});
    nlohmann::json entry{{"profile", name}, {"file", profile.file.string()}};
    const auto add = [&entry](const char* member, const std::string& value) {
      if (!value.empty()) entry[member] = value;
    };
    add("orchestrator", profile.orchestrator);
    add("description", profile.description);
    add("context", profile.field("context"));
    add("namespace", name_space);
    add("registry", registry);
    add("state", profile.state.string());
    add("claim", profile.field("claim"));
    add("artifact_store", profile.remote_store.url);
    add("service_account", profile.field("service_account"));
    if (profile.jobs != 0) entry["jobs"] = profile.jobs;
    list.push_back(std::move(entry));
  }
  if (context.options().json) {
    context.print_json(list);
  } else if (table.empty()) {
    context.print("there are no profiles; add one to " + shown_path(folder / "profiles.yaml") +
                  ", as in\n  lab: {orchestrator: kubernetes, namespace: ml}\n");
  } else {
    context.print(table.render(context.paint()));
  }
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
