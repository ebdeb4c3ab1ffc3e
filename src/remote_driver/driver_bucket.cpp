#include "remote_driver/driver_bucket.hpp"

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

settings::ArtifactStoreSettings bucket_of_driver(s3::BucketArtifacts& here) {
  auto settings = here.bucket().settings();
  if (!settings.pod_endpoint.empty()) settings.endpoint = settings.pod_endpoint;
  settings.aws_profile.clear();
  if (!settings.certificate_authority.empty())
    settings.certificate_authority = std::filesystem::path(state_of_driver) / authorities_file;
  return settings;
}

StringMap variables_of_bucket(DriverContext context, s3::BucketArtifacts& here) {
  StringMap all;
  all[settings_variable] = settings::to_json(bucket_of_driver(here)).dump();
  if (const auto& file = here.settings().certificate_authority; !file.empty())
    all[authorities_variable] = core::read_file(file);
  const auto found = context.await(here.bucket().keys());
  all["AWS_ACCESS_KEY_ID"] = found.keys.id;
  all["AWS_SECRET_ACCESS_KEY"] = found.keys.secret;
  if (!found.keys.session_token.empty()) all["AWS_SESSION_TOKEN"] = found.keys.session_token;
  if (found.runs_out)
    context.note(
        "note: the keys of the artifact store, from " + found.origin + ", are good until " +
        core::format_time(std::chrono::time_point_cast<WallTime::duration>(*found.runs_out)) +
        ": the driver gets no others");
  return all;
}

std::optional<settings::ArtifactStoreSettings> bucket_from_environment(
    const std::filesystem::path& state) {
  auto settings = settings::artifact_store_of(core::parse_json(core::variable(settings_variable)));
  if (!settings.is_given()) return std::nullopt;
  if (const auto authorities = core::variable(authorities_variable); !authorities.empty())
    core::write_file_atomically(state / authorities_file, authorities);
  return settings;
}

}  // namespace pipeline::remote_driver
