#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <list>
#include <optional>
#include <sstream>

#include <sys/stat.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/log.hpp"
#include "docker/image_builder.hpp"
#include "docker/program_image.hpp"
#include "net/companion.hpp"
#include "orchestrators/docker/container_run.hpp"
#include "orchestrators/docker/gpu_probe.hpp"
#include "orchestrators/factory.hpp"

namespace pipeline {
namespace {

using docker::EngineError;
using nlohmann::json;

/// Tells this user's containers of this state folder from those of others on the same engine, which may be another machine's too.
std::string owner_of(const std::filesystem::path& state) {
  std::string machine;
  std::ifstream("/etc/machine-id") >> machine;
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  Hasher hasher;
  hasher.field(machine).field(host).field(std::to_string(geteuid())).field(std::filesystem::weakly_canonical(state).string());
  return hasher.finish().hex().substr(0, 16);
}

std::filesystem::path home_folder() {
  const char* home = std::getenv("HOME");
  return home ? home : "/";
}

/// What decides an image besides the engine's images themselves is in the settings; where files of the pipeline's folder or the machine's own Python do
/// too, a look at the images is not enough.
bool images_decide(const DockerSettings& settings) {
  return settings.parent_image && !settings.dockerfile && !settings.pyproject_path && !settings.local_project_install_command &&
         !settings.replicate_local_python_environment.value_or(false) && !settings.prevent_build_reuse.value_or(false);
}

class DockerOrchestrator : public Orchestrator {
 public:
  DockerOrchestrator(asio::io_context& loop, OrchestratorOptions options)
      : loop_(loop),
        options_(std::move(options)),
        engine_(loop, docker::find_endpoint()),
        removals_(engine_),
        builder_(loop, engine_, {.root = options_.root, .template_dir = options_.template_dir, .run_id = options_.run_id}),
        programs_(loop, engine_, options_.run_id) {
    capabilities_.name = "docker";
    capabilities_.gpus = capabilities_.explicit_devices = capabilities_.memory_limits = capabilities_.cpu_limits = true;
    capabilities_.gpus_of_this_machine = engine_.endpoint().is_of_this_machine();
  }

  const Capabilities& capabilities() const override { return capabilities_; }

  Task<Environment> environment(const StepSpec& step) override {
    const auto status = co_await builder_.status(step);
    auto environment = co_await environment_of(step, status);
    if (step.program && environment.ready) {
      const auto image = co_await programs_.status(step, status);
      add_program(environment, image);
    }
    co_return environment;
  }

  Task<bool> unchanged(std::string recheck) override {
    const auto images = json::parse(recheck, nullptr, false);
    if (!images.is_object()) co_return false;  // empty: what is made of nothing never changes
    for (const auto& [reference, id] : images.items()) {
      const auto now = co_await engine_.inspect_image(reference);
      if (!now || !now->contains("Id") || now->at("Id") != id) co_return false;
    }
    co_return true;
  }

  Task<Environment> prepare(const StepSpec& step, EventSink& events, CancelSource& cancel) override {
    const auto status = co_await builder_.ensure(step, events, cancel);
    auto environment = co_await environment_of(step, status);
    if (step.program) {
      const auto image = co_await programs_.ensure(step, status, events, cancel);
      add_program(environment, image);
    }
    co_return environment;
  }

  Task<AttemptResult> run(const Attempt& attempt) override {
    auto image = co_await builder_.status(attempt.step);
    if (attempt.step.program) image = co_await programs_.status(attempt.step, image);
    if (image.image_id.empty())
      throw EnvironmentError("cannot run the step '" + attempt.step.name + "': its image " + image.reference +
                             " is not on the engine: " + image.reason);
    ContainerPlace place;
    place.image = image.image_id;
    place.root = options_.root;
    place.home = home_folder();
    place.owner = owner();
    place.user = co_await caller();
    if (attempt.step.program) place.program = co_await program_words(attempt.step, image.image_id);
    if (!attempt.gpus.empty()) {
      auto* access = place.gpu_access = co_await gpu_access();
      if (access->ways().empty()) throw EnvironmentError("cannot give GPUs to the step '" + attempt.step.name + "': " + access->problem());
      place.memory = co_await memory();
      place.gate = gpu_request(attempt.step.settings.resources).preflight;
    }
    if (attempt.step.settings.docker.user) open_to_all(attempt);
    place.elsewhere = elsewhere_;
    auto result = co_await run_container(engine_, attempt, place, image.reference, removals_);
    elsewhere_ |= place.elsewhere;
    result.image = image.image_id;
    co_return result;
  }

  /// In the step's image if it is there, else in its parent; where neither is, the step's is made.
  Task<std::optional<gpu::Inventory>> gpus(const StepSpec& step, EventSink& events, CancelSource& cancel) override {
    if (!inventory_) {
      auto* access = co_await gpu_access();
      auto image = (co_await builder_.status(step)).image_id;
      if (const auto& parent = step.settings.docker.parent_image; image.empty() && parent) {
        const auto found = co_await engine_.inspect_image(*parent);
        if (found) image = *parent;
      }
      if (image.empty()) image = (co_await builder_.ensure(step, events, cancel)).image_id;
      StringMap labels;
      labels["pipe.run"] = options_.run_id;
      labels["pipe.state"] = owner();
      inventory_ = co_await probe_gpus(engine_, *access, image, std::move(labels));
    }
    co_return inventory_;
  }

  Task<std::vector<GpuHold>> gpus_in_use() override {
    std::vector<GpuHold> holds;
    std::vector<std::string> labels;
    labels.push_back(gpus_label);
    const auto containers = co_await engine_.list_containers(labels);
    for (const auto& container : containers) {
      const auto state = container.value("State", std::string());
      if (state != "running" && state != "paused" && state != "restarting") continue;
      const auto own = container.value("Labels", json::object());
      const auto name = container.value(json::json_pointer("/Names/0"), container.value("Id", std::string()));
      std::istringstream uuids(own.value(gpus_label, std::string()));
      for (std::string uuid; std::getline(uuids, uuid, ',');)
        holds.push_back({uuid, own.value("pipe.run", ""), own.value("pipe.step", ""), "container " + name.substr(name.starts_with('/') ? 1 : 0)});
    }
    co_return holds;
  }

  Task<> settle() override { return removals_.settle(); }

  Task<> remove_orphans(const std::function<bool(const std::string&)>& is_alive) override {
    std::vector<std::string> labels;
    labels.push_back("pipe.run");
    labels.push_back("pipe.state=" + owner());
    const auto containers = co_await engine_.list_containers(labels);
    std::list<net::Companion> removals;
    for (const auto& container : containers) {
      const auto run = container.value(json::json_pointer("/Labels/pipe.run"), std::string());
      if (is_alive(run)) continue;
      removals.emplace_back(loop_.get_executor(), engine_.remove_container(container.at("Id").get<std::string>()));
    }
    std::exception_ptr error;
    for (auto& removal : removals) {
      co_await removal.join();
      if (removal.error()) error = removal.error();
    }
    if (error) std::rethrow_exception(error);
  }

 private:
  Task<Environment> environment_of(const StepSpec& step, docker::ImageStatus status) {
    Environment environment;
    environment.description = status.reference;
    environment.reason = status.reason;
    environment.ready = !status.image_id.empty();
    if (step.settings.docker.runtime_environment.contains("NVIDIA_VISIBLE_DEVICES") || step.environment.contains("NVIDIA_VISIBLE_DEVICES"))
      environment.notices.push_back(
          "NVIDIA_VISIBLE_DEVICES names the GPUs that a step holds, whatever its settings say: ask for some with `gpu_count`, `devices` or `gpus`");
    if (!status.digest.empty()) environment.id = Hasher().field(status.digest).field(runtime_part(step.settings.docker)).finish().hex();
    if (auto notice = volumes_notice(step.settings.docker); !notice.empty()) environment.notices.push_back(std::move(notice));
    if (environment.ready && images_decide(step.settings.docker))
      environment.recheck = co_await recheck_of(*step.settings.docker.parent_image, status);
    co_return environment;
  }

  /// The program is a part of the key by itself; here it only says what has to be made, and where the step runs.
  static void add_program(Environment& environment, const docker::ImageStatus& image) {
    environment.description = image.reference;
    environment.ready = !image.image_id.empty();
    environment.reason = image.reason;
  }

  Task<std::vector<std::string>> program_words(const StepSpec& step, std::string image_id) {
    if (!image_variables_.contains(image_id)) {
      const auto image = co_await engine_.inspect_image(image_id);
      const auto given = image ? image->value(json::json_pointer("/Config/Env"), json()) : json();
      image_variables_[image_id] = given.is_array() ? given.get<std::vector<std::string>>() : std::vector<std::string>();
    }
    auto variables = image_variables_[image_id];
    const auto& own = step.settings.docker.runtime_environment;
    if (const auto path = own.find("LD_LIBRARY_PATH"); path != own.end()) variables.push_back("LD_LIBRARY_PATH=" + path->second);
    co_return docker::program_words(*step.program->program, variables);
  }

  /// Folders mean those of the engine's machine.
  std::string volumes_notice(const DockerSettings& settings) const {
    const auto& url = engine_.endpoint().url;
    const bool by_path = std::any_of(settings.volumes.items().begin(), settings.volumes.items().end(), [](const std::string& volume) {
      return std::string_view("/.~").find(volume.front()) != std::string_view::npos;
    });
    if (url.starts_with("unix://") || !by_path) return {};
    return "the folders under `docker.volumes` are taken from the engine's machine (" + url + "), not from this one";
  }

  /// The image, and the parent that decides which one it is, by their identifiers.
  Task<std::string> recheck_of(std::string parent, docker::ImageStatus status) {
    json images;
    if (status.image_id == "scratch") co_return std::string("{}");
    images[status.reference] = status.image_id;
    if (parent != status.reference) {
      if (!parent_ids_.contains(parent)) {
        const auto image = co_await engine_.inspect_image(parent);
        parent_ids_[parent] = image && image->contains("Id") ? image->at("Id").get<std::string>() : std::string();
      }
      if (parent_ids_[parent].empty()) co_return std::string();
      images[parent] = parent_ids_[parent];
    }
    co_return images.dump();
  }

  const std::string& owner() {
    if (owner_.empty()) owner_ = owner_of(options_.state);
    return owner_;
  }

  /// GET /info, once.
  Task<const json*> system() {
    if (system_.is_null()) {
      auto answer = co_await engine_.system_info();
      if (system_.is_null()) system_ = std::move(answer);
    }
    co_return &system_;
  }

  Task<Bytes> memory() {
    const auto* info = co_await system();
    co_return info->value("MemTotal", Bytes{0});
  }

  Task<docker::GpuAccess*> gpu_access() {
    const auto* info = co_await system();
    const auto* engine = co_await engine_.info();
    if (!gpu_access_) {
      gpu_access_.emplace(*engine, *info);
      if (!gpu_access_->ways().empty()) log::info("engine: GPUs by " + std::string(to_string(gpu_access_->ways().front())));
    }
    co_return &*gpu_access_;
  }

  /// Who owns what a container writes when it should be the caller: in a rootless engine that is its root.
  Task<std::string> caller() {
    if (caller_.empty()) {
      std::string user = std::to_string(geteuid()) + ":" + std::to_string(getegid());
      if (geteuid() != 0) {
        const auto* info = co_await system();
        for (const auto& option : info->value("SecurityOptions", json::array()))
          if (option.is_string() && option.get<std::string>().find("rootless") != std::string::npos) user = "0:0";
      }
      caller_ = user;
    }
    co_return caller_;
  }

  /// A user that only the image knows must be able to write where the caller lets it.
  static void open_to_all(const Attempt& attempt) {
    for (const auto* folder : {&attempt.outputs, &attempt.scratch})
      if (chmod(folder->c_str(), 0777) != 0) throw system_error("cannot open " + folder->string() + " to the step's user", errno);
  }

  asio::io_context& loop_;
  OrchestratorOptions options_;
  docker::EngineApi engine_;
  Removals removals_;
  docker::ImageBuilder builder_;
  docker::ProgramImages programs_;
  Capabilities capabilities_;
  std::string owner_, caller_;
  json system_;
  std::optional<docker::GpuAccess> gpu_access_;
  std::optional<gpu::Inventory> inventory_;
  bool elsewhere_ = false;  ///< The engine does not see this machine's files; known from the first container on.
  StringMap parent_ids_;
  std::map<std::string, std::vector<std::string>> image_variables_;  ///< By image id.
};

}  // namespace

std::unique_ptr<Orchestrator> make_docker_orchestrator(asio::io_context& loop, OrchestratorOptions options) {
  return std::make_unique<DockerOrchestrator>(loop, std::move(options));
}

}  // namespace pipeline
