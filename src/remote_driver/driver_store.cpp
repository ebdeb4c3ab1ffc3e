#include "remote_driver/driver_store.hpp"

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/file.hpp"
#include "core/quantity.hpp"
#include "core/user_environment.hpp"

namespace pipeline::remote_driver {
namespace {

constexpr const char *settings_variable = "PIPE_DRIVER_ARTIFACT_STORE",
                     *authorities_variable = "PIPE_DRIVER_AUTHORITIES";
constexpr const char* authorities_file = "authorities.pem";

}  // namespace

settings::RemoteStoreSettings store_settings_of_driver(blobs::BlobStore& store) {
  return store.pod_access()->settings_in_pod(std::filesystem::path(state_of_driver) /
                                             authorities_file);
}

StringMap store_variables_of_driver(DriverContext context, blobs::BlobStore& store) {
  auto& pods = *store.pod_access();
  const auto keys = context.await(pods.keys_for_pod());
  auto all = keys.variables;
  all[settings_variable] = settings::to_json(store_settings_of_driver(store)).dump();
  if (auto authorities = pods.authorities(); !authorities.empty())
    all[authorities_variable] = std::move(authorities);
  if (keys.expiry)
    context.note("note: the keys of the remote store, from " + keys.origin + ", are valid until " +
                 core::format_time(std::chrono::time_point_cast<WallTime::duration>(*keys.expiry)) +
                 ", and the driver gets no newer ones");
  return all;
}

std::optional<settings::RemoteStoreSettings> store_from_environment(
    const std::filesystem::path& state) {
  auto settings = settings::remote_store_of(core::parse_json(core::variable(settings_variable)));
  if (!settings.is_given()) return std::nullopt;
  if (const auto authorities = core::variable(authorities_variable); !authorities.empty())
    core::write_file_atomically(state / authorities_file, authorities);
  return settings;
}

}  // namespace pipeline::remote_driver
