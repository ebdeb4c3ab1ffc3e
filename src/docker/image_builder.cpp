#include "docker/image_builder.hpp"

#include <functional>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "async/single_flight.hpp"
#include "core/digest.hpp"
#include "core/joined.hpp"
#include "core/project.hpp"
#include "core/text.hpp"
#include "docker/archived_parent.hpp"
#include "docker/build_log.hpp"
#include "docker/build_query.hpp"
#include "docker/build_reason.hpp"
#include "docker/build_report.hpp"
#include "docker/build_stages.hpp"
#include "docker/context.hpp"
#include "docker/credentials.hpp"
#include "docker/dockerfile.hpp"
#include "docker/engine_connection.hpp"
#include "docker/image_identity.hpp"
#include "docker/json_text.hpp"
#include "docker/layer_image.hpp"
#include "docker/package_layers.hpp"
#include "docker/package_lock.hpp"
#include "docker/reference.hpp"
#include "net/url.hpp"
#include "python_packages/unknown_requirements.hpp"
#include "settings/settings.hpp"

namespace pipeline::docker {

namespace {

using Clock = std::chrono::steady_clock;

/// Returns a key over everything that determines the plan of a step: equal keys give equal images.
std::string key_of(const StepSpec& step) {
  auto settings = step.settings->docker;
  settings.runtime_environment.clear();
  settings.volumes.reset();
  settings.network.reset();
  settings.labels.clear();
  settings.run_args.clear();
  auto key =
      settings::to_json(settings).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (settings.local_project_install_command) {
    key += '\n' + step.code_root->string();
    for (auto& pattern : step.code->items()) key += '\n' + pattern;
  }
  if (step.program) key += "\nprogram";
  return key;
}

/// Returns the error for images that were pulled, but that the engine does not show. An engine's
/// store can keep images of several platforms, while its API describes only those of its own.
core::EnvironmentError invisible_image_error(const ImagePlan& plan) {
  const auto& used = plan.parent ? plan.parent->images_used : plan.images_used;
  return core::EnvironmentError(
      "the engine has pulled " + core::joined(used, ", ") + ", but does not list it" +
          (plan.platform.empty() ? std::string() : " for " + plan.platform),
      {"if another program removes images at this moment (docker image prune), run again",
       "an engine before 28.1 that keeps images in containerd's store shows only its own platform: "
       "update it, or `docker rmi` the image so that it has no other platform's"});
}

}  // namespace

struct ImageBuilder::Implementation {
  Implementation(asio::io_context& loop, EngineApi& api, BuilderOptions builder_options)
      : engine(api),
        options(std::move(builder_options)),
        archives(loop, engine, options),
        inspected(loop),
        made(loop),
        builds(loop),
        pulls(loop),
        packages(loop, resolver(), options) {}

  Resolver resolver() {
    return [this](Resolution resolution, std::function<void(const std::string&)> on_line,
                  core::CancelSource& cancel) {
      return resolve_packages(engine, std::move(resolution), std::move(on_line), cancel);
    };
  }

  /// A plan and the engine's current state of its image.
  struct InspectedImage {
    std::shared_ptr<ImagePlan> plan;  // Shared by the coroutines that use it; immutable.
    ImageStatus status;
    bool resolves = false;  // The requirements have to be resolved first; `status` has the reason.
  };
  class BuildJob;

  async::Task<InspectedImage> inspect(const StepSpec& step);
  async::Task<InspectedImage> locked_plan(const StepSpec& step);
  async::Task<ImageStatus> image_status(ImagePlan& plan);
  /// Returns why a command that only looks (core/project.hpp) cannot resolve the requirements: a
  /// program of the settings, or a build, would have to run first. Empty if it can resolve them.
  async::Task<std::string> unknown_to_look(const StepSpec& step, const InspectedImage& image);
  async::Task<ImageStatus> parent_status(const ImagePlan& plan);
  /// Returns the image if the engine has it for the plan's platform, or it is an archive.
  async::Task<std::optional<nlohmann::json>> parent_image(std::string reference,
                                                          const ImagePlan& plan);

  EngineApi& engine;
  BuilderOptions options;
  ArchivedParents archives;
  async::SingleFlight<InspectedImage> inspected;  // Keyed by key_of(step).
  async::SingleFlight<ImageStatus> made;          // Keyed by key_of(step).
  async::SingleFlight<std::string> builds;        // The image's id, keyed by its reference.
  async::SingleFlight<std::string> pulls;         // The image's id, keyed by reference, platform.
  std::set<std::string> reported_notices;
  PackageLock packages;
};

/// Makes the image of a step for one caller.
class ImageBuilder::Implementation::BuildJob {
 public:
  BuildJob(Implementation& builder, const StepSpec& step, EventSink& events,
           core::CancelSource& cancel)
      : builder_(builder), step_(step), events_(events), cancel_(cancel) {}

  async::Task<ImageStatus> make();
  /// Resolves the requirements unless another job has resolved the same ones, or the parent image
  /// shows that they are locked.
  async::Task<> resolve(const ImagePlan& plan);

 private:
  async::Task<InspectedImage> prepare(InspectedImage image, bool is_newer_wanted);
  async::Task<> pull_all(const ImagePlan& plan);
  async::Task<> pull(const std::string& reference, const ImagePlan& plan);
  async::Task<std::string> run_pull(const std::string& reference, const std::string& platform);
  async::Task<ImageStatus> build(const ImagePlan& plan, ImageStatus status, std::string from);
  async::Task<std::string> run_build(const ImagePlan& plan, const ImageStatus& status,
                                     const std::string& from);
  async::Task<> tag(const ImagePlan& plan, const ImageStatus& status);
  void report_notices(const ImagePlan& plan);

  Implementation& builder_;
  const StepSpec& step_;
  EventSink& events_;
  core::CancelSource& cancel_;
};

ImageBuilder::ImageBuilder(asio::io_context& loop, EngineApi& engine, BuilderOptions options)
    : self_(std::make_unique<Implementation>(loop, engine, std::move(options))) {}
ImageBuilder::~ImageBuilder() = default;

async::Task<ImageStatus> ImageBuilder::status(const StepSpec& step) {
  const auto key = key_of(step);
  auto image = co_await self_->inspected.get(
      key, [&] { return self_->inspect(step); }, nullptr);
  co_return image.status;
}

async::Task<ImageStatus> ImageBuilder::ensure(const StepSpec& step, EventSink& events,
                                              core::CancelSource& cancel) {
  const auto key = key_of(step);
  Implementation::BuildJob job(*self_, step, events, cancel);
  co_return co_await self_->made.get(
      key, [&] { return job.make(); }, &cancel);
}

async::Task<> ImageBuilder::lock(const StepSpec& step, EventSink& events,
                                 core::CancelSource& cancel) {
  const auto image = co_await self_->inspect(step);
  if (!image.resolves) co_return;
  if (core::only_looks()) {
    const auto unknown = co_await self_->unknown_to_look(step, image);
    if (!unknown.empty()) {
      events.emit(event::Notice{step.name, "its packages are not known until it runs: " + unknown});
      if (self_->options.lock) self_->options.lock->keep_all_environments();
      co_return;
    }
  }
  Implementation::BuildJob job(*self_, step, events, cancel);
  co_await job.resolve(*image.plan);
}

async::Task<std::string> ImageBuilder::Implementation::unknown_to_look(
    const StepSpec& step, const InspectedImage& image) {
  auto unknown = python_packages::unknown_reason(image.plan->python);
  if (!unknown.empty()) co_return unknown;
  const auto system = co_await inspect(without_packages(step));
  const bool is_built = !system.plan->build || !system.status.image_id.empty();
  co_return is_built ? std::string() : system.status.reason;
}

async::Task<std::optional<nlohmann::json>> ImageBuilder::Implementation::parent_image(
    std::string reference, const ImagePlan& plan) {
  if (has_archived_parent(plan)) co_return archives.image(plan).description;
  auto image = co_await engine.inspect_image(reference, plan.platform);
  if (image && !fits_platform(*image, plan.platform)) image.reset();
  co_return image;
}

/// Returns the status of a plan that uses its parent image unchanged.
async::Task<ImageStatus> ImageBuilder::Implementation::parent_status(const ImagePlan& plan) {
  if (has_archived_parent(plan)) co_return co_await archives.status(plan);
  ImageStatus status;
  status.resolves = plan.resolves;
  status.reference = plan.parent_image;
  if (plan.images_used.empty()) {  // scratch.
    status.image_id = status.digest = plan.parent_image;
  } else if (const auto image = co_await parent_image(plan.parent_image, plan)) {
    status.image_id = image->at("Id").get<std::string>();
    status.digest = image_identity(*image);
  } else {
    status.reason = "parent image " + plan.parent_image + " is missing: it will be pulled";
  }
  co_return status;
}

/// Returns the status of a plan, and adds the parent's identity to the plan's parts. If the plan
/// uses the parent unchanged, the status is that of the parent.
async::Task<ImageStatus> ImageBuilder::Implementation::image_status(ImagePlan& plan) {
  if (!plan.build) co_return co_await parent_status(plan);
  ImageStatus status;
  status.resolves = plan.resolves;
  std::vector<std::string> ids, missing;
  if (plan.parent) {
    auto parent = co_await image_status(*plan.parent);
    if (parent.digest.empty()) {
      status.reason = parent.reason;
      co_return status;
    }
    ids.push_back(parent.digest);
    plan.parts["parent_image"] = {"dockerfile"};
    plan.parts["parent_id"] = {parent.digest.substr(0, 12)};
  }
  for (auto& used : plan.images_used) {
    const auto image = co_await parent_image(used, plan);
    if (!image) {
      missing.push_back(used);
      continue;
    }
    ids.push_back(image_identity(*image));
    plan.parts["parent_image"] = {used};
    plan.parts["parent_id"] = {ids.back().substr(0, 12)};
  }
  if (!missing.empty()) {
    status.reason = "parent image " + core::joined(missing, ", ") +
                    " is missing: it will be pulled, and the image built";
    co_return status;
  }
  status.digest = plan_digest(plan, ids);
  status.parents = ids;
  status.reference =
      plan.repository + (plan.for_own_dockerfile ? ":own-" : ":env-") + status.digest.substr(0, 16);
  status.image_id = co_await layer_image_id(engine, status.reference, status.digest, plan.platform);
  if (!status.image_id.empty()) co_return status;
  if (!plan.run_id.empty()) {
    status.reason = "prevent_build_reuse is set";
  } else {
    const auto images = co_await engine.call(
        "GET", "/images/json?filters=" + net::url_encode(R"({"label":["pipe.parts"]})"));
    status.reason = build_reason(plan.parts, images, plan.layers);
  }
  co_return status;
}

/// Returns the plan with its locked packages. If the requirements have to be resolved first, sets
/// `resolves` and the status's reason.
async::Task<ImageBuilder::Implementation::InspectedImage> ImageBuilder::Implementation::locked_plan(
    const StepSpec& step) {
  InspectedImage image;
  image.plan = std::make_shared<ImagePlan>(plan_image(step, options));
  auto& plan = *image.plan;
  if (const auto unknown = python_packages::unknown_reason(plan.python); !unknown.empty()) {
    image.resolves = true;
    image.status.reason = "not known until it runs: " + unknown;
    co_return image;
  }
  Locked locked;
  if (packages.covers(plan)) {
    image.status.requirements = locked_lines(plan.python, options.root);
    const auto system = co_await inspect(without_packages(step));
    if (!system.status.digest.empty()) locked = packages.find(plan, system.status.digest);
    if (!locked) {
      image.resolves = true;
      image.status.reason = system.status.digest.empty()
                                ? system.status.reason
                                : "its requirements are not in " +
                                      options.lock->path().filename().string() +
                                      ": they are resolved first";
      co_return image;
    }
  }
  // Installs need root, so the parent's user is restored afterwards.
  std::string user;
  if (plan.build && !plan.for_own_dockerfile) {
    if (plan.parent) {
      user = last_user(plan.parent->dockerfile);
      if (user == "root" || user == "0") user.clear();
    } else if (const auto parent = co_await parent_image(plan.parent_image, plan)) {
      user = user_of(*parent);
    }
  }
  if (!user.empty() || locked) {
    image.plan = std::make_shared<ImagePlan>(plan_image(step, options, user, locked.get()));
    if (!locked) packages.covers(*image.plan);  // Adds the reason as a notice.
  }
  co_return image;
}

async::Task<ImageBuilder::Implementation::InspectedImage> ImageBuilder::Implementation::inspect(
    const StepSpec& step) {
  auto image = co_await locked_plan(step);
  if (image.resolves) co_return image;
  auto requirements = std::move(image.status.requirements);
  image.status = co_await image_status(*image.plan);
  image.status.requirements = std::move(requirements);
  co_return image;
}

async::Task<> ImageBuilder::Implementation::BuildJob::resolve(const ImagePlan& plan) {
  const auto system = without_packages(step_);
  BuildJob job(builder_, system, events_, cancel_);
  const auto parent = co_await job.make();
  if (!builder_.packages.find(plan, parent.digest))
    co_await builder_.packages.resolve(plan, parent, step_.name, events_, cancel_);
}

async::Task<> ImageBuilder::Implementation::BuildJob::pull_all(const ImagePlan& plan) {
  for (const auto& used : plan.images_used) co_await pull(used, plan);
  if (plan.parent) co_await pull_all(*plan.parent);
}

async::Task<> ImageBuilder::Implementation::BuildJob::pull(const std::string& reference,
                                                           const ImagePlan& plan) {
  if (has_archived_parent(plan))
    co_return co_await builder_.archives.ensure(plan, step_.name, events_, cancel_);
  BuildReport report{reference, step_.name, "pull: build_options.pull is set"};
  if (!plan.options.pull.value_or(false)) {
    const auto image = co_await builder_.engine.inspect_image(reference, plan.platform);
    if (image && fits_platform(*image, plan.platform)) co_return;
    report.reason = image ? "pull: the engine has it for another platform"
                          : "pull: the engine does not have it";
  }
  const auto key = reference + " " + plan.platform;
  const auto work = [&] {
    return reported(run_pull(reference, plan.platform), report, events_, cancel_);
  };
  co_await builder_.pulls.get(key, work, &cancel_);
}

async::Task<std::string> ImageBuilder::Implementation::BuildJob::run_pull(
    const std::string& reference, const std::string& platform) {
  const auto registry = registry_of(reference);
  auto auth = co_await registry_auth(registry);
  if (!auth.notice.empty() && builder_.reported_notices.insert(auth.notice).second)
    events_.emit(event::Notice{"", auth.notice});
  const std::function<void(std::string_view)> on_line = [&](std::string_view line) {
    events_.emit(event::BuildProgress{reference, std::string(line)});
  };
  co_await builder_.engine.pull_image(reference, platform, auth.header, on_line, cancel_);
  const auto image = co_await builder_.engine.inspect_image(reference, platform);
  co_return image ? image->at("Id").get<std::string>() : std::string();
}

void ImageBuilder::Implementation::BuildJob::report_notices(const ImagePlan& plan) {
  for (const auto& notice : plan.notices)
    if (builder_.reported_notices.insert(notice).second)
      events_.emit(event::Notice{step_.name, notice});
  if (plan.parent) report_notices(*plan.parent);
}

/// Pulls the parent images and resolves the requirements.
async::Task<ImageBuilder::Implementation::InspectedImage>
ImageBuilder::Implementation::BuildJob::prepare(InspectedImage image, bool is_newer_wanted) {
  co_await pull_all(*image.plan);
  const bool is_loaded = !image.plan->build && has_archived_parent(*image.plan);
  if (image.status.digest.empty() || is_newer_wanted || is_loaded)
    image = co_await builder_.inspect(step_);
  if (image.resolves) {
    co_await resolve(*image.plan);
    image = co_await builder_.inspect(step_);
    report_notices(*image.plan);
  }
  if (image.status.digest.empty()) throw invisible_image_error(*image.plan);
  co_return image;
}

async::Task<ImageStatus> ImageBuilder::Implementation::BuildJob::make() {
  const auto key = key_of(step_);
  auto image = co_await builder_.inspected.get(
      key, [&] { return builder_.inspect(step_); }, &cancel_);
  report_notices(*image.plan);
  const auto* parent = image.plan->parent.get();
  const bool is_newer_wanted =
      image.plan->options.pull.value_or(false) || (parent && parent->options.pull.value_or(false));
  if (image.status.image_id.empty() || is_newer_wanted)
    image = co_await prepare(image, is_newer_wanted);
  const auto& plan = *image.plan;
  if (plan.build) {
    if (image.status.image_id.empty()) {
      ImageStatus from;
      if (has_archived_parent(plan)) from.reference = builder_.archives.reference(plan);
      if (plan.parent) {
        from = co_await builder_.image_status(*plan.parent);
        if (from.image_id.empty()) from = co_await build(*plan.parent, from, "");
      }
      image.status = co_await build(plan, image.status, from.reference);
    }
    if (!plan.tag.empty()) co_await tag(plan, image.status);
  }
  image.status.reason.clear();
  builder_.inspected.set(key, image);  // From now on the image exists.
  co_return image.status;
}

async::Task<> ImageBuilder::Implementation::BuildJob::tag(const ImagePlan& plan,
                                                          const ImageStatus& status) {
  const auto name = plan.repository + ":" + plan.tag;
  const auto tagged = co_await builder_.engine.inspect_image(name);
  if (!tagged || tagged->at("Id") != status.image_id)
    co_await builder_.engine.tag_image(status.reference, plan.repository, plan.tag);
}

/// @param from reference of the parent image, if it was built from the user's own Dockerfile or
/// loaded from an archive; else empty
async::Task<ImageStatus> ImageBuilder::Implementation::BuildJob::build(const ImagePlan& plan,
                                                                       ImageStatus status,
                                                                       std::string from) {
  const BuildReport report{status.reference, step_.name, status.reason};
  const auto work = [&] {
    return reported(run_build(plan, status, from), report, events_, cancel_);
  };
  status.image_id = co_await builder_.builds.get(status.reference, work, &cancel_);
  co_return status;
}

async::Task<std::string> ImageBuilder::Implementation::BuildJob::run_build(
    const ImagePlan& plan, const ImageStatus& status, const std::string& from) {
  auto& engine = builder_.engine;
  auto* info = co_await engine.info();
  auto dockerfile =
      info->buildkit || plan.classic_dockerfile.empty() ? plan.dockerfile : plan.classic_dockerfile;
  for (const auto* name : {"pipe:own-dockerfile", archived_parent_name})
    if (!from.empty()) dockerfile = core::replaced(std::move(dockerfile), name, from);

  const auto stage = status.digest + "-" + std::to_string(Clock::now().time_since_epoch().count());
  dockerfile = core::replaced(std::move(dockerfile), "of-this-build", stage);
  dockerfile = with_own_caches(std::move(dockerfile), plan, status, builder_.options);

  auto files = plan.context;
  if (!plan.for_own_dockerfile)
    files.push_back({.path = "Dockerfile", .content = dockerfile, .bytes = dockerfile.size()});
  for (auto& file : plan.host_only)
    if (!info->buildkit || !file.path.starts_with("collect/")) files.push_back(file);

  const auto new_log = [&] {
    return BuildLog(
        [&](const std::string& line) {
          events_.emit(event::BuildProgress{status.reference, line});
        },
        layer_titles(plan.layers));
  };
  auto log = new_log();
  std::optional<EngineError> refused;
  std::exception_ptr broken;
  const auto request = build_query(plan, status, *info, builder_.options.run_id);
  const std::function<void(const nlohmann::json&)> on_message = [&](const nlohmann::json& message) {
    log.read(message);
  };
  const int max_builds = info->buildkit ? 2 : 1;  // See BuildLog::is_cut().
  for (int number = 1; number <= max_builds; ++number) {
    log = new_log();
    const auto context = file_tree::tar_stream(files);
    try {
      co_await engine.build(request, "", context, on_message, cancel_);
    } catch (const EngineError& error) {
      refused = error;
    } catch (...) {
      broken = std::current_exception();
    }
    if (refused || broken || !log.is_cut()) break;
  }
  if (!info->buildkit) co_await remove_stages(engine, std::string(stage_label) + "=" + stage);
  if (broken) std::rethrow_exception(broken);
  if (refused && (refused->status() == 400 || log.failed()))
    throw build_failure(plan, dockerfile, log, refused->status() == 400 ? refused->what() : "");
  if (refused) throw *refused;
  if (log.failed()) throw build_failure(plan, dockerfile, log, "");
  auto image = co_await engine.inspect_image(status.reference, plan.platform);
  if (!image) throw vanished_image_error(status.reference);
  co_return image->at("Id").get<std::string>();
}

}  // namespace pipeline::docker
