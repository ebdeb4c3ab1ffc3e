#include "orchestrators/kubernetes/pod_images.hpp"

#include "agent/programs.hpp"
#include "core/error.hpp"
#include "docker/published_images.hpp"
#include "docker/reference.hpp"
#include "orchestrators/containers/step_images.hpp"
#include "orchestrators/kubernetes/agent_images.hpp"
#include "settings/platform.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

class BuiltImages : public PodImages {
 public:
  BuiltImages(asio::io_context& loop, const OrchestratorOptions& options)
      : engine_(loop, docker::find_endpoint(), docker::limits_from_environment(), options.run),
        published_(loop, engine_),
        images_(loop, engine_, options, &published_),
        agents_(loop, engine_, published_, options.run_id, options.artifacts != nullptr),
        has_stager_(options.artifacts != nullptr),
        lock_(options.images) {}

  async::Task<Environment> environment(const StepSpec& step) override {
    auto environment = co_await images_.environment(step);
    const auto repository = agent_repository(step);
    if (!environment.ready || repository.empty()) co_return environment;
    const auto architecture = co_await architecture_of(step);
    agent::agent_program(architecture);  // Throws if there is none, before anything is built.
    if (!agents_.find(repository, architecture)) {
      environment.ready = false;
      environment.reason = "the agent, which starts the step in its pod, is ";
      environment.reason += docker::names_registry(repository)
                                ? "pushed unless " + docker::registry_of(repository) + " has it"
                                : "built unless it is there";
    }
    co_return environment;
  }

  async::Task<bool> matches(std::string fingerprint) override {
    return images_.matches(std::move(fingerprint));
  }

  async::Task<Environment> prepare(const StepSpec& step, EventSink& events,
                                   core::CancelSource& cancel) override {
    auto environment = co_await images_.prepare(step, events, cancel);
    if (const auto repository = agent_repository(step); !repository.empty()) {
      auto architecture = co_await architecture_of(step);
      co_await agents_.ensure(repository, std::move(architecture), step.name, events, cancel);
    }
    if (lock_) {
      auto image = co_await image_of(step);
      std::string packages;
      if (environment.resolves) packages = co_await images_.packages(step);
      (*lock_)[step.name] = {environment.id, environment.description, std::move(packages),
                             environment.notices, std::move(image)};
    }
    co_return environment;
  }

  async::Task<> lock(const StepSpec& step, EventSink& events, core::CancelSource& cancel) override {
    return images_.builder().lock(step, events, cancel);
  }

  async::Task<std::string> packages(const StepSpec& step) override {
    return images_.packages(step);
  }

  async::Task<PodImage> image_of(const StepSpec& step) override {
    auto made = co_await images_.image_of(step);
    PodImage image;
    image.id = std::move(made.id);
    image.reference = std::move(made.reference);
    image.pull = !made.only_here;
    image.program = std::move(made.program);
    image.services = co_await images_.images_of_services(step);
    if (const auto repository = agent_repository(step); !repository.empty()) {
      const auto architecture = co_await architecture_of(step);
      if (const auto* agent = agents_.find(repository, architecture)) image.agent = *agent;
    }
    co_return image;
  }

 private:
  /// Returns the repository of the agent's image; empty if pods find the agent in shared files.
  std::string agent_repository(const StepSpec& step) const {
    return has_stager_ ? step.settings->docker.target_repository.value_or("pipe")
                       : registry_repository(step);
  }

  /// Returns the architecture of the step's image: its `platform:`'s, else the engine's own.
  async::Task<std::string> architecture_of(const StepSpec& step) {
    if (auto wanted = settings::architecture_of(step.settings->docker.platform.value_or(""));
        !wanted.empty())
      co_return wanted;
    const auto* info = co_await engine_.info();
    co_return info->architecture;
  }

  docker::EngineApi engine_;
  docker::PublishedImages published_;
  containers::StepImages images_;
  AgentImages agents_;
  const bool has_stager_;  ///< The agent's image contains the stager, too.
  ImageLock* lock_;
};

class LockedImages : public PodImages {
 public:
  explicit LockedImages(const ImageLock& lock) : lock_(lock) {}

  async::Task<Environment> environment(const StepSpec& step) override {
    const auto& locked = locked_image(step);
    Environment environment;
    environment.id = locked.environment;
    environment.description = locked.description;
    environment.notices = locked.notices;
    environment.ready = true;
    environment.resolves = !locked.packages.empty();
    co_return environment;
  }
  async::Task<> lock(const StepSpec&, EventSink&, core::CancelSource&) override { co_return; }
  async::Task<std::string> packages(const StepSpec& step) override {
    co_return locked_image(step).packages;
  }
  async::Task<bool> matches(std::string) override { co_return false; }
  async::Task<Environment> prepare(const StepSpec& step, EventSink&, core::CancelSource&) override {
    return environment(step);
  }
  async::Task<PodImage> image_of(const StepSpec& step) override {
    co_return locked_image(step).image;
  }

 private:
  /// Throws EnvironmentError for a step without a recorded image.
  const LockedImage& locked_image(const StepSpec& step) const {
    if (const auto found = lock_.find(step.name); found != lock_.end()) return found->second;
    // An instance that a run makes of a step has the step's image.
    if (step.instance)
      if (const auto found = lock_.find(*step.instance->of); found != lock_.end())
        return found->second;
    throw core::EnvironmentError("the step '" + step.name +
                                 "' has no recorded image: the pipeline did not have the step when "
                                 "the run started");
  }
  const ImageLock& lock_;
};

}  // namespace

std::string registry_repository(const StepSpec& step) {
  const auto& repository = step.settings->docker.target_repository;
  return repository && docker::names_registry(*repository) ? *repository : std::string();
}

std::unique_ptr<PodImages> built_images(asio::io_context& loop,
                                        const OrchestratorOptions& options) {
  return std::make_unique<BuiltImages>(loop, options);
}
std::unique_ptr<PodImages> locked_images(const ImageLock& lock) {
  return std::make_unique<LockedImages>(lock);
}

}  // namespace pipeline::orchestrators::kubernetes
