#include "orchestrators/containers/service_images.hpp"

#include <utility>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/digest.hpp"

namespace pipeline::orchestrators::containers {
namespace {

/// Merges the fingerprints of two environments, which are JSON objects; returns an empty text if
/// one of them is empty.
std::string joined_fingerprint(const std::string& first, const std::string& second) {
  auto images = core::parse_json(first);
  const auto more = core::parse_json(second);
  if (!images.is_object() || !more.is_object()) return {};
  images.update(more);
  return images.dump();
}

}  // namespace

StepSpec step_of_service(const StepSpec& step, const ServiceSpec& service) {
  StepSpec made;
  made.name = step.name;
  made.settings->docker.parent_image = service.image;
  made.settings->docker.skip_build = true;
  const auto& docker = std::as_const(step.settings)->docker;
  made.settings->docker.platform = docker.platform;
  made.settings->docker.target_repository = docker.target_repository;
  return made;
}

void add_service(Environment& environment, const Environment& service) {
  if (environment.ready && !service.ready) environment.reason = service.reason;
  environment.ready = environment.ready && service.ready;
  environment.id =
      environment.id.empty() || service.id.empty()
          ? std::string()
          : core::Hasher().field(environment.id).field("service").field(service.id).finish().hex();
  environment.fingerprint = joined_fingerprint(environment.fingerprint, service.fingerprint);
}

}  // namespace pipeline::orchestrators::containers
