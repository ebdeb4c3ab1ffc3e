#include "docker/image_builder.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "async/single_flight.hpp"
#include "core/digest.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "docker/build_log.hpp"
#include "docker/build_query.hpp"
#include "docker/build_reason.hpp"
#include "docker/build_stages.hpp"
#include "docker/context.hpp"
#include "docker/credentials.hpp"
#include "docker/dockerfile.hpp"
#include "docker/engine_connection.hpp"
#include "docker/image_identity.hpp"
#include "docker/json_text.hpp"
#include "docker/package_layers.hpp"
#include "docker/package_lock.hpp"
#include "docker/reference.hpp"
#include "net/url.hpp"
#include "settings/settings.hpp"

namespace pipeline::docker {

namespace {

using Clock = std::chrono::steady_clock;

/// Key over everything that determines the plan of a step: equal keys give equal images.
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
    key += '\n' + step.code_root.string();
    for (auto& pattern : step.code.items()) key += '\n' + pattern;
  }
  if (step.program) key += "\nprogram";
  return key;
}

std::string user_of(const nlohmann::json& image) {
  auto config = image.find("Config");
  return config != image.end() && config->is_object() ? config->value("User", "") : "";
}

/// Returns USER at the end of a Dockerfile's last stage; empty if not set there.
std::string last_user(const std::string& dockerfile) {
  std::string user;
  for (auto& instruction : instructions_of(dockerfile)) {
    auto verb = instruction.text.substr(0, 5);
    std::ranges::transform(verb, verb.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (verb == "from ") user.clear();
    if (verb == "user ") user = instruction.text.substr(5);
  }
  return user.find('$') == user.npos ? user : "";
}

bool fits_platform(const nlohmann::json& image, const std::string& platform) {
  if (platform.empty()) return true;
  auto own = text_at(image, "Os") + "/" + text_at(image, "Architecture");
  return platform == own || platform.starts_with(own + "/");
}

/// The error for images that were pulled and are nevertheless not there: a store with several
/// platforms whose API describes only its own machine's.
core::EnvironmentError not_to_be_seen(const ImagePlan& plan) {
  const auto& used = plan.parent ? plan.parent->images_used : plan.images_used;
  std::string images;
  for (const auto& image : used) images += (images.empty() ? "" : ", ") + image;
  return core::EnvironmentError(
      "the engine has pulled " + images + ", but does not show it" +
          (plan.platform.empty() ? std::string() : " for " + plan.platform),
      {"if another program removes images at this moment (docker image prune), run again",
       "an engine before 28.1 that keeps images in containerd's store shows only its own platform: "
       "update it, or `docker rmi` the image so that it has no other platform's"});
}

}  // namespace

struct ImageBuilder::Implementation {
  Implementation(asio::io_context& event_loop, EngineApi& api, BuilderOptions builder_options)
      : loop(event_loop),
        engine(api),
        options(std::move(builder_options)),
        lookups(loop),
        made(loop),
        builds(loop),
        pulls(loop),
        packages(loop, engine, options) {}

  /// A plan and the engine's current state of its image.
  struct InspectedImage {
    std::shared_ptr<ImagePlan> plan;  // Shared by the coroutines that use it; immutable.
    ImageStatus status;
    bool resolves = false;  // Its requirements are resolved before anything else is known.
  };

  async::Task<InspectedImage> look(const StepSpec& step);
  async::Task<InspectedImage> plan_of(const StepSpec& step);
  async::Task<> resolve(const StepSpec& step, const ImagePlan& plan, EventSink& events,
                        core::CancelSource& cancel);
  async::Task<ImageStatus> look_at(ImagePlan& plan);
  async::Task<ImageStatus> look_at_parent(const ImagePlan& plan);
  async::Task<ImageStatus> make(const StepSpec& step, EventSink& events,
                                core::CancelSource& cancel);
  async::Task<ImageStatus> build(const ImagePlan& plan, ImageStatus status, const std::string& from,
                                 const std::string& step, EventSink& events,
                                 core::CancelSource& cancel);
  async::Task<ImageStatus> reported_build(const ImagePlan& plan, const ImageStatus& status,
                                          const std::string& from, const std::string& step,
                                          EventSink& events, core::CancelSource& cancel);
  async::Task<ImageStatus> run_build(const ImagePlan& plan, ImageStatus status,
                                     const std::string& from, EventSink& events,
                                     core::CancelSource& cancel);
  async::Task<> pull(const std::string& reference, const std::string& platform, bool newer,
                     const std::string& step, EventSink& events, core::CancelSource& cancel);
  async::Task<bool> run_pull(const std::string& reference, const std::string& platform,
                             const std::string& reason, const std::string& step, EventSink& events,
                             core::CancelSource& cancel);

  asio::io_context& loop;
  EngineApi& engine;
  BuilderOptions options;
  async::SingleFlight<InspectedImage> lookups;  // Keyed by key_of(step).
  async::SingleFlight<ImageStatus> made;        // Keyed by key_of(step).
  async::SingleFlight<ImageStatus> builds;      // Keyed by reference.
  async::SingleFlight<bool> pulls;              // Keyed by reference and platform.
  std::set<std::string> reported;               // Notices, each shown once.
  PackageLock packages;
};

ImageBuilder::ImageBuilder(asio::io_context& loop, EngineApi& engine, BuilderOptions options)
    : self_(std::make_unique<Implementation>(loop, engine, std::move(options))) {}
ImageBuilder::~ImageBuilder() = default;

async::Task<ImageStatus> ImageBuilder::status(const StepSpec& step) {
  const auto key = key_of(step);
  const std::function<async::Task<Implementation::InspectedImage>()> look = [&]() {
    return self_->look(step);
  };
  auto looked = co_await self_->lookups.get(key, look, nullptr);
  co_return looked.status;
}

async::Task<ImageStatus> ImageBuilder::ensure(const StepSpec& step, EventSink& events,
                                              core::CancelSource& cancel) {
  const auto key = key_of(step);
  const std::function<async::Task<ImageStatus>()> make = [&]() {
    return self_->make(step, events, cancel);
  };
  auto status = co_await self_->made.get(key, make, &cancel);
  co_return status;
}

async::Task<> ImageBuilder::lock(const StepSpec& step, EventSink& events,
                                 core::CancelSource& cancel) {
  const auto looked = co_await self_->look(step);
  if (looked.resolves) co_await self_->resolve(step, *looked.plan, events, cancel);
}

/// The status of a plan that does not build.
async::Task<ImageStatus> ImageBuilder::Implementation::look_at_parent(const ImagePlan& plan) {
  ImageStatus status;
  status.resolves = plan.resolves;
  status.reference = plan.parent_image;
  if (plan.images_used.empty()) {  // scratch.
    status.image_id = status.digest = plan.parent_image;
    co_return status;
  }
  const auto image = co_await engine.inspect_image(plan.parent_image, plan.platform);
  if (image && fits_platform(*image, plan.platform)) {
    status.image_id = image->at("Id").get<std::string>();
    status.digest = image_identity(*image);
  } else {
    status.reason = "parent image " + plan.parent_image + " is missing: it will be pulled";
  }
  co_return status;
}

/// Sets digest, reference and image_id as far as they are known; for a plan that does not build,
/// those of the parent.
async::Task<ImageStatus> ImageBuilder::Implementation::look_at(ImagePlan& plan) {
  if (!plan.build) {
    auto status = co_await look_at_parent(plan);
    co_return status;
  }
  ImageStatus status;
  status.resolves = plan.resolves;
  std::vector<std::string> ids;
  std::string missing;
  if (plan.parent) {
    auto parent = co_await look_at(*plan.parent);
    if (parent.digest.empty()) {
      status.reason = parent.reason;
      co_return status;
    }
    ids.push_back(parent.digest);
    plan.parts["parent_image"] = {"dockerfile"};
    plan.parts["parent_id"] = {parent.digest.substr(0, 12)};
  }
  for (auto& used : plan.images_used) {
    auto image = co_await engine.inspect_image(used, plan.platform);
    if (image && fits_platform(*image, plan.platform)) {
      ids.push_back(image_identity(*image));
      plan.parts["parent_image"] = {used};
      plan.parts["parent_id"] = {ids.back().substr(0, 12)};
    } else {
      missing += (missing.empty() ? "" : ", ") + used;
    }
  }
  if (!missing.empty()) {
    status.reason =
        "parent image " + missing + " is missing: it will be pulled, and the image built";
    co_return status;
  }
  status.digest = plan_digest(plan, ids);
  status.reference = plan.repository + (plan.own ? ":own-" : ":env-") + status.digest.substr(0, 16);
  if (auto image = co_await engine.inspect_image(status.reference, plan.platform)) {
    auto config = image->find("Config");
    auto labels = config != image->end() && config->is_object()
                      ? config->value("Labels", nlohmann::json())
                      : nlohmann::json();
    if (text_at(labels, "pipe.digest") == status.digest)
      status.image_id = (*image)["Id"].get<std::string>();
  }
  if (status.image_id.empty()) {
    if (!plan.run_id.empty()) {
      status.reason = "prevent_build_reuse is set";
    } else {
      const auto images = co_await engine.call(
          "GET", "/images/json?filters=" + net::url_encode(R"({"label":["pipe.parts"]})"));
      status.reason = build_reason(plan.parts, images, plan.layers);
    }
  }
  co_return status;
}

/// Returns the plan with the packages that are locked for it; if there are none, also the status,
/// which says so.
async::Task<ImageBuilder::Implementation::InspectedImage> ImageBuilder::Implementation::plan_of(
    const StepSpec& step) {
  InspectedImage looked;
  looked.plan = std::make_shared<ImagePlan>(plan_image(step, options));
  auto& plan = *looked.plan;
  Locked locked;
  if (packages.covers(plan)) {
    const auto system = co_await look(without_packages(step));
    if (!system.status.digest.empty()) locked = packages.find(plan, system.status.digest);
    if (!locked) {
      looked.resolves = true;
      looked.status.reason = system.status.digest.empty()
                                 ? system.status.reason
                                 : "its requirements are not in " +
                                       options.lock->path().filename().string() +
                                       ": they are resolved first";
      co_return looked;
    }
  }
  // Installs need root, so the parent's user is restored afterwards.
  std::string user;
  if (plan.build && !plan.own) {
    if (plan.parent) {
      user = last_user(plan.parent->dockerfile);
    } else if (auto image = co_await engine.inspect_image(plan.parent_image, plan.platform)) {
      user = user_of(*image);
    }
    if (user == "root" || user == "0") user.clear();
  }
  if (!user.empty() || locked) {
    looked.plan = std::make_shared<ImagePlan>(plan_image(step, options, user, locked.get()));
    if (!locked) packages.covers(*looked.plan);  // Says why it is not.
  }
  co_return looked;
}

async::Task<ImageBuilder::Implementation::InspectedImage> ImageBuilder::Implementation::look(
    const StepSpec& step) {
  auto looked = co_await plan_of(step);
  if (!looked.resolves) looked.status = co_await look_at(*looked.plan);
  co_return looked;
}

/// Another step may have the same requirements, or the parent was missing and they are locked.
async::Task<> ImageBuilder::Implementation::resolve(const StepSpec& step, const ImagePlan& plan,
                                                    EventSink& events, core::CancelSource& cancel) {
  const auto system = without_packages(step);
  const auto parent = co_await make(system, events, cancel);
  if (!packages.find(plan, parent.digest))
    co_await packages.resolve(plan, parent, step.name, events, cancel);
}

async::Task<> ImageBuilder::Implementation::pull(const std::string& reference,
                                                 const std::string& platform, bool newer,
                                                 const std::string& step, EventSink& events,
                                                 core::CancelSource& cancel) {
  std::string reason = "build_options.pull is set";
  if (!newer) {
    auto image = co_await engine.inspect_image(reference, platform);
    if (image && fits_platform(*image, platform)) co_return;
    reason = image ? "the engine has it for another platform" : "the engine does not have it";
  }
  const auto key = reference + " " + platform;
  const std::function<async::Task<bool>()> make = [&]() {
    return run_pull(reference, platform, reason, step, events, cancel);
  };
  co_await pulls.get(key, make, &cancel);
}

async::Task<bool> ImageBuilder::Implementation::run_pull(const std::string& reference,
                                                         const std::string& platform,
                                                         const std::string& reason,
                                                         const std::string& step, EventSink& events,
                                                         core::CancelSource& cancel) {
  auto began = Clock::now();
  auto took = [&] {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began);
  };
  events.emit(event::BuildStarted{reference, {step}, "pull: " + reason});
  const auto registry = registry_of(reference);
  auto auth = co_await registry_auth(registry);
  if (!auth.notice.empty() && reported.insert(auth.notice).second)
    events.emit(event::Notice{"", auth.notice});
  try {
    co_await engine.pull_image(
        reference, platform, auth.header,
        [&](std::string_view line) {
          events.emit(event::BuildProgress{reference, std::string(line)});
        },
        cancel);
  } catch (const core::EnvironmentError& failed) {
    events.emit(event::BuildFinished{reference, "", took(), failure_of(failed, cancel)});
    throw;
  }
  auto image = co_await engine.inspect_image(reference, platform);
  events.emit(
      event::BuildFinished{reference, image ? (*image)["Id"].get<std::string>() : "", took(), {}});
  co_return true;
}

async::Task<ImageStatus> ImageBuilder::Implementation::make(const StepSpec& step, EventSink& events,
                                                            core::CancelSource& cancel) {
  const auto key = key_of(step);
  const std::function<async::Task<InspectedImage>()> look_up = [&]() { return look(step); };
  auto looked = co_await lookups.get(key, look_up, &cancel);
  auto tell = [&](const ImagePlan& plan) {
    for (auto& notice : plan.notices)
      if (reported.insert(notice).second) events.emit(event::Notice{step.name, notice});
  };
  tell(*looked.plan);
  if (looked.plan->parent) tell(*looked.plan->parent);

  bool newer = looked.plan->options.pull.value_or(false) ||
               (looked.plan->parent && looked.plan->parent->options.pull.value_or(false));
  if (looked.status.image_id.empty() || newer) {
    auto& plan = *looked.plan;
    for (auto& used : plan.images_used)
      co_await pull(used, plan.platform, plan.options.pull.value_or(false), step.name, events,
                    cancel);
    if (plan.parent)
      for (auto& used : plan.parent->images_used)
        co_await pull(used, plan.platform, plan.parent->options.pull.value_or(false), step.name,
                      events, cancel);
    if (looked.status.digest.empty() || newer) looked = co_await look(step);
    if (looked.resolves) {
      co_await resolve(step, *looked.plan, events, cancel);
      looked = co_await look(step);
      tell(*looked.plan);
    }
    if (looked.status.digest.empty()) throw not_to_be_seen(*looked.plan);
  }
  auto& plan = *looked.plan;
  auto status = looked.status;
  if (plan.build) {
    std::string from;
    if (status.image_id.empty() && plan.parent) {
      auto parent = co_await look_at(*plan.parent);
      if (parent.image_id.empty())
        parent = co_await build(*plan.parent, parent, "", step.name, events, cancel);
      from = parent.reference;
    }
    if (status.image_id.empty())
      status = co_await build(plan, status, from, step.name, events, cancel);
    if (!plan.tag.empty()) {
      const auto name = plan.repository + ":" + plan.tag;
      auto tagged = co_await engine.inspect_image(name);
      if (!tagged || (*tagged)["Id"] != status.image_id)
        co_await engine.tag_image(status.reference, plan.repository, plan.tag);
    }
  }
  status.reason.clear();
  looked.status = status;
  lookups.set(key, looked);  // From now on the image exists.
  co_return status;
}

async::Task<ImageStatus> ImageBuilder::Implementation::build(
    const ImagePlan& plan, ImageStatus status, const std::string& from, const std::string& step,
    EventSink& events, core::CancelSource& cancel) {
  const std::function<async::Task<ImageStatus>()> make = [&]() {
    return reported_build(plan, status, from, step, events, cancel);
  };
  co_return co_await builds.get(status.reference, make, &cancel);
}

async::Task<ImageStatus> ImageBuilder::Implementation::reported_build(
    const ImagePlan& plan, const ImageStatus& status, const std::string& from,
    const std::string& step, EventSink& events, core::CancelSource& cancel) {
  auto began = Clock::now();
  auto took = [&] {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began);
  };
  events.emit(event::BuildStarted{status.reference, {step}, status.reason});
  try {
    auto result = co_await run_build(plan, status, from, events, cancel);
    events.emit(event::BuildFinished{result.reference, result.image_id, took(), {}});
    co_return result;
  } catch (const core::EnvironmentError& error) {
    events.emit(event::BuildFinished{status.reference, "", took(), failure_of(error, cancel)});
    throw;
  }
}

async::Task<ImageStatus> ImageBuilder::Implementation::run_build(const ImagePlan& plan,
                                                                 ImageStatus status,
                                                                 const std::string& from,
                                                                 EventSink& events,
                                                                 core::CancelSource& cancel) {
  auto* info = co_await engine.info();
  auto dockerfile =
      info->buildkit || plan.classic_dockerfile.empty() ? plan.dockerfile : plan.classic_dockerfile;
  if (!from.empty())
    dockerfile = core::replaced(std::move(dockerfile), "pipe:own-dockerfile", from);

  const auto stage = status.digest + "-" + std::to_string(Clock::now().time_since_epoch().count());
  dockerfile = core::replaced(std::move(dockerfile), "of-this-build", stage);

  auto files = plan.context;
  if (!plan.own)
    files.push_back({.path = "Dockerfile", .content = dockerfile, .bytes = dockerfile.size()});
  for (auto& file : plan.host_only)
    if (!info->buildkit || !file.path.starts_with("collect/")) files.push_back(file);

  const auto new_log = [&] {
    return BuildLog(
        [&](const std::string& line) {
          events.emit(event::BuildProgress{status.reference, line});
        },
        layer_titles(plan.layers));
  };
  auto log = new_log();
  std::optional<EngineError> refused;
  std::exception_ptr broken;
  const auto request = build_query(plan, status, *info, options.run_id);
  const std::function<void(const nlohmann::json&)> on_message = [&](const nlohmann::json& message) {
    log.message(message);
  };
  const int most = info->buildkit ? 2 : 1;  // See BuildLog::is_cut().
  for (int number = 1; number <= most; ++number) {
    log = new_log();
    const auto context = file_tree::tar_stream(files);
    try {
      co_await engine.build(request, "", context, on_message, cancel);
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
  if (!image)
    throw core::BuildError(
        "the engine built " + status.reference + " without an error, but does not have it", {},
        {"if another program removes images at this moment (docker image prune), run again"});
  status.image_id = (*image)["Id"].get<std::string>();
  co_return status;
}

}  // namespace pipeline::docker
