#include "orchestrators/containers/step_images.hpp"

#include <algorithm>

#include "core/address.hpp"
#include "core/bounded_json.hpp"
#include "core/digest.hpp"
#include "core/error.hpp"
#include "docker/reference.hpp"
#include "oci/image_archive.hpp"
#include "orchestrators/containers/container_layout.hpp"
#include "orchestrators/containers/image_use.hpp"
#include "orchestrators/containers/installed_packages.hpp"
#include "orchestrators/containers/service_images.hpp"
#include "orchestrators/owner.hpp"
#include "settings/image_archive.hpp"
#include "settings/settings.hpp"

namespace pipeline::orchestrators::containers {
namespace {

using nlohmann::json;

/// Returns true if the image is built on the engine, not pulled from a registry.
bool is_built(const StepSpec& step, const docker::ImageStatus& status) {
  return status.reference !=
         step.settings->docker.parent_image.value_or(std::string(settings::default_parent_image));
}

/// Reads the archives of a pipeline's folder for an engine.
auto archive_reader(std::filesystem::path root) {
  return [root = std::move(root)](const std::string& parent_image, const std::string& platform) {
    const auto image = oci::read_archive(*settings::image_archive(parent_image), root, platform);
    docker::ArchivedImage archived;
    archived.description = image.description;
    archived.tar = [image](const std::string& name) { return oci::loadable_tar(image, name); };
    return archived;
  };
}

/// Describes an image whose packages, and so its reference, are not known yet.
std::string description_of(const DockerSettings& settings) {
  constexpr std::size_t named = 3;
  auto text = "image from " + settings.parent_image.value_or(settings.dockerfile.value_or(
                                  std::string(settings::default_parent_image)));
  const auto& requirements = settings.requirements.items();
  for (std::size_t i = 0; i < std::min(named, requirements.size()); ++i)
    text += (i ? ", " : " with ") + core::without_credentials(requirements[i]);
  if (requirements.size() > named)
    text += " and " + std::to_string(requirements.size() - named) + " more";
  return text;
}

/// Lets the environment describe the image that also has the program. The id stays that of the
/// image without it, because the program is a separate part of the key.
void add_program(Environment& environment, const docker::ImageStatus& image) {
  environment.description = image.reference;
  environment.ready = !image.image_id.empty();
  environment.reason = image.reason;
}

}  // namespace

bool images_decide(const DockerSettings& settings) {
  return settings.parent_image && !settings::image_archive(*settings.parent_image) &&
         !settings.dockerfile && !settings.pyproject_path &&
         !settings.local_project_install_command &&
         !settings.replicate_local_python_environment.value_or(false) &&
         !settings.prevent_build_reuse.value_or(false);
}

StepImages::StepImages(asio::io_context& loop, docker::EngineApi& engine,
                       const OrchestratorOptions& options, docker::PublishedImages* published)
    : engine_(engine),
      builder_(loop, engine,
               {.root = options.root,
                .template_dir = options.template_dir,
                .run_id = options.run_id,
                .lock = options.lock,
                .owner = options.state.empty() ? std::string() : owner_of(options.state),
                .state = options.state,
                .read_archive = archive_reader(options.root)}),
      programs_(loop, engine, options.run_id),
      published_(published),
      run_(options.run_id),
      state_(options.state),
      packages_(loop) {}

async::Task<Environment> StepImages::environment(const StepSpec& step) {
  auto status = co_await builder_.status(step);
  auto environment = co_await environment_of(step, status);
  if (step.program && environment.ready) {
    status = co_await programs_.status(step, status);
    add_program(environment, status);
  }
  // The registry is not contacted here, because a run that reuses all results does not need it.
  if (environment.ready && is_to_be_published(step, status) &&
      !published_->find({status.reference, status.image_id})) {
    environment.ready = false;
    environment.reason = "it is pushed unless " + docker::registry_of(status.reference) + " has it";
  }
  for (const auto& [name, service] : step.services) {
    const auto service_step = step_of_service(step, service);
    const auto service_environment = co_await this->environment(service_step);
    add_service(environment, service_environment);
  }
  co_return environment;
}

async::Task<bool> StepImages::matches(std::string fingerprint) {
  const auto images = core::parse_json(fingerprint);
  if (!images.is_object()) co_return false;  // The text is empty unless images_decide().
  for (const auto& [reference, id] : images.items()) {
    const auto now = co_await engine_.inspect_image(reference);
    if (!now || !now->contains("Id") || now->at("Id") != id) co_return false;
  }
  co_return true;
}

async::Task<Environment> StepImages::prepare(const StepSpec& step, EventSink& events,
                                             core::CancelSource& cancel) {
  auto status = co_await builder_.ensure(step, events, cancel);
  auto environment = co_await environment_of(step, status);
  if (step.program) {
    status = co_await programs_.ensure(step, status, events, cancel);
    add_program(environment, status);
  }
  if (is_to_be_published(step, status)) co_await publish(step, status, events, cancel);
  for (const auto& [name, service] : step.services) {
    const auto service_step = step_of_service(step, service);
    const auto service_environment = co_await prepare(service_step, events, cancel);
    add_service(environment, service_environment);
  }
  co_return environment;
}

async::Task<std::string> StepImages::packages(const StepSpec& step) {
  const auto status = co_await builder_.status(step);
  StringMap labels;
  labels["pipe.run"] = run_;
  labels["pipe.state"] = owner_of(state_);
  const std::function<async::Task<std::string>()> look = [&]() {
    return installed_packages(engine_, status.image_id, std::move(labels));
  };
  const auto list = co_await packages_.get(status.image_id, look, nullptr);
  co_return core::sha256(list).hex();
}

async::Task<StepImage> StepImages::image_of(const StepSpec& step) {
  auto status = co_await builder_.status(step);
  if (step.program) status = co_await programs_.status(step, status);
  if (status.image_id.empty())
    throw core::EnvironmentError("cannot run the step '" + step.name + "': its image " +
                                 status.reference + " is not on the engine: " + status.reason);
  note_use(status.image_id);
  StepImage image;
  image.id = status.image_id;
  image.reference = status.reference;
  image.only_here = is_built(step, status);
  if (is_to_be_published(step, status)) {
    const auto* published = published_->find({status.reference, status.image_id});
    if (!published)
      throw core::EnvironmentError("cannot run the step '" + step.name + "': its image " +
                                       status.reference + " was rebuilt since it was pushed",
                                   {"run again: that pushes the image"});
    image.reference = *published;
    image.only_here = false;
  } else if (published_ && !image.only_here) {
    const auto parent = co_await engine_.inspect_image(status.reference);
    auto known = parent ? docker::pinned_reference(*parent, status.reference) : std::string();
    if (!known.empty()) image.reference = std::move(known);
  }
  if (step.program) image.program = co_await program_words(step, status.image_id);
  co_return image;
}

async::Task<StringMap> StepImages::images_of_services(const StepSpec& step) {
  StringMap images;
  for (const auto& [name, service] : step.services) {
    const auto service_step = step_of_service(step, service);
    const auto image = co_await image_of(service_step);
    images[name] = published_ ? image.reference : image.id;
  }
  co_return images;
}

bool StepImages::is_to_be_published(const StepSpec& step, const docker::ImageStatus& status) const {
  return published_ && is_built(step, status) && docker::names_registry(status.reference);
}

async::Task<> StepImages::publish(const StepSpec& step, docker::ImageStatus status,
                                  EventSink& events, core::CancelSource& cancel) {
  const docker::LocalImage image{status.reference, status.image_id};
  co_await published_->publish(image, step.name, events, cancel);
  if (const auto& tag = step.settings->docker.image_tag; tag && !step.program)
    co_await published_->add_tag(image, *tag, step.name, events, cancel);
}

async::Task<Environment> StepImages::environment_of(const StepSpec& step,
                                                    docker::ImageStatus status) {
  Environment environment;
  environment.description =
      status.reference.empty() ? description_of(step.settings->docker) : status.reference;
  environment.reason = status.reason;
  environment.ready = !status.image_id.empty();
  environment.resolves = status.resolves;
  environment.requirements = status.requirements;
  if (step.settings->docker.runtime_environment.contains("NVIDIA_VISIBLE_DEVICES") ||
      step.environment.contains("NVIDIA_VISIBLE_DEVICES"))
    environment.notices.push_back(
        "NVIDIA_VISIBLE_DEVICES names the GPUs that a step holds: ask "
        "for GPUs with `gpu_count`, `devices` or `gpus`");
  if (step.settings->resources.gpu_ids && sets_variable(step, "CUDA_VISIBLE_DEVICES"))
    environment.notices.push_back(
        "`resources.gpu_ids` has no effect: the step sets CUDA_VISIBLE_DEVICES itself");
  if (!status.digest.empty())
    environment.id = core::Hasher()
                         .field(status.digest)
                         .field(runtime_part(step.settings->docker))
                         .finish()
                         .hex();
  if (environment.ready && images_decide(step.settings->docker))
    environment.fingerprint = co_await fingerprint_of(*step.settings->docker.parent_image, status);
  co_return environment;
}

/// Returns the identifiers of the image and of its parent image as a JSON object, by reference;
/// empty if the parent image is missing.
async::Task<std::string> StepImages::fingerprint_of(std::string parent,
                                                    docker::ImageStatus status) {
  json images;
  if (status.image_id == "scratch") co_return std::string("{}");
  images[status.reference] = status.image_id;
  if (parent != status.reference) {
    if (!parent_ids_.contains(parent)) {
      const auto image = co_await engine_.inspect_image(parent);
      parent_ids_[parent] =
          image && image->contains("Id") ? image->at("Id").get<std::string>() : std::string();
    }
    if (parent_ids_[parent].empty()) co_return std::string();
    images[parent] = parent_ids_[parent];
  }
  co_return images.dump();
}

async::Task<std::vector<std::string>> StepImages::program_words(const StepSpec& step,
                                                                std::string image_id) {
  if (!image_variables_.contains(image_id)) {
    const auto image = co_await engine_.inspect_image(image_id);
    const auto given = image ? image->value(json::json_pointer("/Config/Env"), json()) : json();
    image_variables_[image_id] =
        given.is_array() ? given.get<std::vector<std::string>>() : std::vector<std::string>();
  }
  auto variables = image_variables_[image_id];
  const auto& own = step.settings->docker.runtime_environment;
  if (const auto path = own.find("LD_LIBRARY_PATH"); path != own.end())
    variables.push_back("LD_LIBRARY_PATH=" + path->second);
  co_return docker::program_words(*step.program->program, variables);
}

}  // namespace pipeline::orchestrators::containers
