#include "driver/profile_use.hpp"

#include <cstdlib>
#include <type_traits>

#include "core/diagnostic.hpp"
#include "spec/profile_file.hpp"

namespace pipeline::driver {
namespace {

/// Applies where no profile is named.
constexpr auto default_profile = "default";

/// Returns the name of the profile to use; empty: none.
std::string chosen_profile(const WorkspaceOptions& options, const ProfileUse& use) {
  if (!options.profile.empty()) return options.profile;
  const char* named = std::getenv("PIPE_PROFILE");
  const bool is_named = named && *named;
  if (!is_named && use.is_given("profile")) return {};  // `--profile ''` asks for none.
  if (is_named && !use.ignores_unknown) return named;
  const std::string name = is_named ? named : default_profile;
  try {
    return spec::find_profiles(use.folder).contains(name) ? name : std::string();
  } catch (const core::InputError& error) {
    if (!use.on_unreadable) throw;
    use.on_unreadable(error.what());
    return {};
  }
}

}  // namespace

void use_profile(WorkspaceOptions& options, const ProfileUse& use) {
  options.profile = chosen_profile(options, use);
  if (options.profile.empty()) return;
  const auto profile = spec::find_profile(options.profile, use.folder);
  const auto fill = [&](const char* option, auto& value, const auto& from) {
    if (!use.is_given(option) && from != std::decay_t<decltype(from)>{}) value = from;
  };
  fill("orchestrator", options.orchestrator, profile.orchestrator);
  for (const auto& [field, value] : profile.connection)
    if (!use.is_given(field)) options.connection[field] = value;
  fill("jobs", options.jobs, profile.jobs);
  fill("state", options.state, profile.state);
  fill("service-account", options.service_account, profile.field("service_account"));
  options.keep_storage = profile.keep_storage;
  options.page = profile.page;
  options.remote_store = profile.remote_store;
}

}  // namespace pipeline::driver
