#include "cli/profiles.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "core/diagnostic.hpp"
#include "core/file.hpp"
#include "core/project.hpp"
#include "core/user_environment.hpp"
#include "spec/profile_file.hpp"

namespace pipeline::cli {
namespace {

/// Applies where no profile is named.
constexpr auto default_profile = "default";

std::filesystem::path folder_of(const Options& options) {
  // A command about runs takes no file, and is called in a pipeline's folder.
  if (!options.program && !options.takes_file)
    return std::filesystem::absolute(options.file).parent_path();
  return Context(options).pipeline_file().parent_path();
}

/// Commands that act; all others only look.
constexpr std::array acting{"run",    "build", "lock",   "shell",      "attach", "resume",
                            "cancel", "clean", "verify", "kubernetes", "__drive"};

/// Returns the servers of the user's own profiles and environment, to which credentials may go.
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

/// Returns the profiles that a command may use which no option or variable gave one. A file that
/// cannot be read is a warning to a command about runs, whose state folder has what it needs.
spec::Profiles profiles_at_hand(const Options& options, const std::filesystem::path& folder) {
  try {
    return spec::find_profiles(folder);
  } catch (const core::InputError& error) {
    if (options.takes_file || options.program) throw;
    Context(options).note("warning: no profile applies: " + std::string(error.what()));
    return {};
  }
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
  const bool is_asked_for = !options.profile.empty();
  if (const char* name = std::getenv("PIPE_PROFILE"); name && options.profile.empty())
    options.profile = name;
  const auto folder = folder_of(options);
  if (options.profile.empty() && !options.given.contains("--profile") &&
      profiles_at_hand(options, folder).contains(default_profile))
    options.profile = default_profile;
  if (options.profile.empty()) return;
  // A command about runs may be called in any folder, whatever $PIPE_PROFILE is.
  if (!is_asked_for && !options.takes_file && !options.program &&
      !spec::find_profiles(folder).contains(options.profile))
    return options.profile.clear();
  const auto profile = spec::find_profile(options.profile, folder);
  const auto fill = [&](const char* option, auto& value, const auto& from) {
    if (!options.given.contains(option) && from != std::decay_t<decltype(from)>{}) value = from;
  };
  fill("--orchestrator", options.orchestrator, profile.orchestrator);
  for (const auto& [field, value] : profile.connection)
    if (!options.given.contains("--" + field)) options.connection[field] = value;
  fill("--jobs", options.jobs, profile.jobs);
  fill("--state", options.state, profile.state);
  fill("--service-account", options.service_account, profile.field("service_account"));
  options.keep_storage = profile.keep_storage;
  options.page = profile.page;
  options.remote_store = profile.remote_store;
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
    table.add({name, profile.orchestrator, for_terminal(cluster, false), registry,
               for_terminal(shown_path(profile.state), false), shown_path(profile.file)});
    list.push_back({{"profile", name},
                    {"description", profile.description},
                    {"orchestrator", profile.orchestrator},
                    {"context", profile.field("context")},
                    {"namespace", name_space},
                    {"registry", registry},
                    {"state", profile.state.string()},
                    {"claim", profile.field("claim")},
                    {"artifact_store", profile.remote_store.url},
                    {"service_account", profile.field("service_account")},
                    {"jobs", profile.jobs},
                    {"file", profile.file.string()}});
  }
  if (context.options().json) {
    context.print_json(list);
  } else if (table.empty()) {
    context.print("no profiles; one is written to " + shown_path(folder / "profiles.yaml") +
                  " as\n  lab: {orchestrator: kubernetes, namespace: ml}\n");
  } else {
    context.print(table.render(context.paint()));
  }
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
