#include "docker/archived_parent.hpp"

#include <utility>

#include "core/error.hpp"
#include "core/excerpt.hpp"
#include "docker/build_report.hpp"
#include "docker/image_identity.hpp"
#include "docker/json_text.hpp"
#include "settings/image_archive.hpp"

namespace pipeline::docker {
namespace {

constexpr std::string_view parent_tag = ":parent-";
constexpr std::size_t digits_in_name = 16;

}  // namespace

bool has_archived_parent(const ImagePlan& plan) {
  return !plan.for_own_dockerfile && settings::image_archive(plan.parent_image).has_value();
}

std::string archived_reference(const ImagePlan& plan, const std::string& identity) {
  return plan.repository + std::string(parent_tag) + identity.substr(0, digits_in_name);
}

bool is_archived_reference(std::string_view name) {
  const auto tag = name.rfind(':');
  return tag != name.npos && name.substr(tag).starts_with(parent_tag) &&
         name.size() - tag == parent_tag.size() + digits_in_name;
}

const ArchivedImage& ArchivedParents::image(const ImagePlan& plan) {
  const auto key = plan.parent_image + " " + plan.platform;
  if (const auto known = images_.find(key); known != images_.end()) return known->second;
  if (!options_.read_archive)
    throw core::EnvironmentError(plan.parent_image + " is an archive, which cannot be loaded here",
                                 {"load it by `docker load`, and name the image that this gives"});
  return images_.emplace(key, options_.read_archive(plan.parent_image, plan.platform))
      .first->second;
}

std::string ArchivedParents::identity(const ImagePlan& plan) {
  return image_identity(image(plan).description);
}

std::string ArchivedParents::reference(const ImagePlan& plan) {
  return archived_reference(plan, identity(plan));
}

async::Task<std::string> ArchivedParents::image_id(const ImagePlan& plan) {
  const auto wanted = identity(plan);
  const auto found = co_await engine_.inspect_image(archived_reference(plan, wanted));
  if (!found || image_identity(*found) != wanted) co_return std::string();
  co_return found->at("Id").get<std::string>();
}

async::Task<ImageStatus> ArchivedParents::status(const ImagePlan& plan) {
  ImageStatus status;
  status.resolves = plan.resolves;
  status.reference = reference(plan);
  status.digest = identity(plan);
  status.image_id = co_await image_id(plan);
  if (status.image_id.empty())
    status.reason = "parent image " + plan.parent_image + " is missing: it will be loaded";
  co_return status;
}

async::Task<> ArchivedParents::ensure(const ImagePlan& plan, std::string step, EventSink& events,
                                      core::CancelSource& cancel) {
  const auto loaded = co_await image_id(plan);
  if (!loaded.empty()) co_return;
  const BuildReport report{reference(plan), std::move(step), "load: from " + plan.parent_image};
  const std::function<async::Task<std::string>()> work = [&]() {
    return reported(load(plan, cancel), report, events, cancel);
  };
  co_await loads_.get(report.image, work, &cancel);
}

async::Task<std::string> ArchivedParents::load(const ImagePlan& plan, core::CancelSource& cancel) {
  const auto name = reference(plan);
  const auto& archive = image(plan);
  std::string refusal;
  const std::function<void(const nlohmann::json&)> on_message = [&](const nlohmann::json& message) {
    if (const auto error = text_at(message, "error"); !error.empty()) refusal = error;
  };
  co_await engine_.load_image(plan.parent_image, archive.tar(name), on_message, cancel);
  if (!refusal.empty())
    throw core::EnvironmentError(
        "the engine cannot load " + plan.parent_image + ": " + core::excerpt(refusal),
        {"an engine before 23.0 loads no layers that are packed by zstd: `skopeo copy "
         "oci-archive:FILE docker-archive:FILE` unpacks them"});
  auto id = co_await image_id(plan);
  if (id.empty())
    throw core::EnvironmentError(
        "the engine has loaded " + plan.parent_image + ", but has no such image as " + name,
        {"`docker load` and `docker images` show what it makes of the archive"});
  co_return id;
}

}  // namespace pipeline::docker
