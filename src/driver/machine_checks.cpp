#include "driver/machine_checks.hpp"

#include <sys/statvfs.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/joined.hpp"
#include "core/json_member.hpp"
#include "core/quantity.hpp"
#include "core/text.hpp"
#include "core/version.hpp"
#include "docker/config.hpp"
#include "docker/credentials.hpp"
#include "docker/engine_api.hpp"
#include "docker/gpu_access.hpp"
#include "docker/image_storage.hpp"
#include "docker/json_text.hpp"
#include "driver/session.hpp"
#include "gpu/choose.hpp"
#include "gpu/compatibility.hpp"
#include "gpu/lock_folder.hpp"
#include "gpu/step_checks.hpp"
#include "net/program.hpp"
#include "orchestrators/processes/sandbox.hpp"

namespace pipeline::driver {
namespace {

using nlohmann::json;

constexpr Bytes gibibyte = Bytes{1} << 30;

class MachineChecks {
 public:
  explicit MachineChecks(Workspace& workspace) : workspace_(workspace) {}

  std::vector<MachineCheck> examine() {
    check_gpus();
    check_engine();
    check_python();
    check_slurm();
    check_service();
    check_state();
    return std::move(checks_);
  }

 private:
  void add(const char* name, CheckLevel level, std::string found,
           std::vector<std::string> fixes = {}) {
    checks_.push_back({name, level, std::move(found), std::move(fixes)});
  }

  /// Returns the output of a program, and true if it succeeded.
  std::pair<std::string, bool> output_of(std::vector<std::string> command) try {
    net::ProgramCall call;
    call.command = std::move(command);
    const auto answer = workspace_.await(net::run_program(std::move(call)));
    return {std::string(core::trimmed(answer.output)), answer.code == 0};
  } catch (const core::EnvironmentError&) {  // The program is not installed.
    return {};
  }

  void check_engine() {
    docker::Endpoint endpoint;
    try {
      endpoint = docker::find_endpoint();
      docker::EngineApi engine(workspace_.loop(), endpoint);
      const auto& info = *workspace_.await(engine.info());
      add("engine", CheckLevel::ok,
          std::string(info.podman ? "Podman " : "Docker Engine ") + info.version + " at " +
              endpoint.url + " (" + endpoint.origin + "), " + info.os + "/" + info.architecture);
      add("API", CheckLevel::ok,
          "version " + info.api_version + " (the engine's oldest: " + info.min_api_version + ")");
      if (info.buildkit) {
        add("BuildKit", CheckLevel::ok, "builds with cache mounts");
      } else {
        add("BuildKit", CheckLevel::warn,
            "missing: images are built by the classic builder, which keeps no package cache",
            {info.podman ? "nothing to do: Podman builds without it"
                         : "use Docker Engine 18.09 or newer"});
      }
      const auto system = workspace_.await(engine.system_info());
      report_engine_kind(info, system);
      check_engine_disk(system);
      report_images(engine);
      check_limits(info, system);
      check_gpu_access(endpoint, info, system);
      check_runc(workspace_.await(engine.call("GET", "/version")));
    } catch (const core::EnvironmentError& error) {
      add("engine", CheckLevel::fail, error.what(), error.advice());
    }
    check_credentials();
  }

  /// Reports the free space of the file system that has the folder.
  /// @param fix advice if there is little space
  void check_disk(const char* name, const std::filesystem::path& folder, const char* fix) {
    struct statvfs status {};
    auto existing = folder;
    while (::statvfs(existing.c_str(), &status) != 0) {
      if (!existing.has_relative_path()) return;
      existing = existing.parent_path();
    }
    const Bytes free = Bytes{status.f_bavail} * status.f_frsize;
    const CheckLevel level = free < gibibyte / 2   ? CheckLevel::fail
                             : free < 5 * gibibyte ? CheckLevel::warn
                                                   : CheckLevel::ok;
    add(name, level, core::format_bytes(free) + " free at " + folder.string(),
        level == CheckLevel::ok ? std::vector<std::string>{} : std::vector<std::string>{fix});
  }

  void check_engine_disk(const json& system) {
    const auto root = docker::text_at(system, "DockerRootDir");
    std::error_code error;
    if (!root.empty() && std::filesystem::exists(root, error))
      check_disk(
          "engine's disk", root,
          "`pipe clean --images` removes images that pipe has built, `docker system prune` more");
  }

  void report_images(docker::EngineApi& engine) {
    const auto storage = docker::storage_of(workspace_.await(docker::stored_images(engine)));
    if (storage.images == 0) return;
    add("images", CheckLevel::ok,
        core::counted(storage.images, "image") +
            " that pipe has built or loaded: " + core::format_bytes(storage.shared) +
            " shared by several of them, " + core::format_bytes(storage.unshared) +
            " of single ones (`pipe clean --images "
            "--keep-storage 20GB` removes those not used for longest)");
  }

  /// Reports how the engine runs, and the features of pipe that this excludes.
  void report_engine_kind(const docker::EngineInfo& info, const json& system) {
    const bool has_containerd = docker::has_containerd_store(system);
    const bool is_rootless = docker::has_security_option(system, "rootless");
    const auto text = [&](const char* key, const char* otherwise) {
      const auto found = docker::text_at(system, key);
      return found.empty() ? std::string(otherwise) : found;
    };
    const auto cgroup = text("CgroupVersion", "1");
    add("engine's kind", CheckLevel::ok,
        std::string(is_rootless ? "rootless" : "as root") + ", cgroup v" + cgroup + ", images in " +
            (has_containerd ? std::string("containerd's store, ") : std::string()) +
            text("Driver", "an unknown store") + ", runtime " + text("DefaultRuntime", "unknown"));
    if (has_containerd && !docker::speaks_api(info, 49))  // API 1.49 is that of Docker Engine 28.1.
      add("platforms", CheckLevel::warn,
          "this engine shows only the variant for its own machine of an image for several "
          "platforms",
          {"for steps with another `platform:`, update to Docker Engine 28.1 or newer"});
    if (is_rootless && cgroup == "1")
      add("limits", CheckLevel::warn, "a rootless engine cannot enforce limits with cgroup v1",
          {"boot the machine with cgroup v2 (systemd.unified_cgroup_hierarchy=1)"});
    if (docker::has_security_option(system, "userns"))
      add("user namespace", CheckLevel::warn,
          "the engine maps users (userns-remap), so they may not use this machine's files: "
          "each step's files are copied into its container and back",
          {"with `run_args: {userns_mode: host}` a step's users are not mapped, and its files are "
           "mounted"});
    if (docker::has_security_option(system, "selinux"))
      add("SELinux", CheckLevel::warn,
          "the engine confines containers by SELinux: a step may be unable to read its files",
          {"give the steps `run_args: {security_opt: [label=disable]}`"});
  }

  void check_limits(const docker::EngineInfo& info, const json& system) {
    std::string missing;
    // Podman looks for the quota where cgroup v1 has it, also on v2.
    const bool quota_is_unknown = info.podman && docker::text_at(system, "CgroupVersion") == "2";
    const auto lacks = [&](const char* key) {
      const auto* found = core::member(system, key);
      return found && *found == json(false);
    };
    if (lacks("MemoryLimit")) missing = "memory";
    if (!quota_is_unknown && lacks("CpuCfsQuota")) missing += missing.empty() ? "CPU" : " and CPU";
    if (missing.empty()) {
      add("limits", CheckLevel::ok, "memory and CPU limits are enforced");
    } else {
      add("limits", CheckLevel::warn, "the engine cannot enforce " + missing + " limits",
          {"enable the cgroup controllers in the kernel (cgroup_enable=memory), or give the "
           "rootless engine's user systemd delegation"});
    }
  }

  /// Reports how the engine gives GPUs to containers. For an engine on another machine, only its
  /// methods are known, not the machine's GPUs.
  void check_gpu_access(const docker::Endpoint& endpoint, const docker::EngineInfo& engine,
                        const json& system) {
    const bool has_gpu = has_gpu_ && endpoint.is_of_this_machine();
    const docker::GpuAccess access(engine, system);
    std::string methods;
    for (const auto method : access.methods())
      methods += (methods.empty() ? "" : ", else by ") + std::string(to_string(method));
    if (!access.problem().empty()) {
      add("GPU toolkit", has_gpu ? CheckLevel::warn : CheckLevel::ok, access.problem());
    } else if (access.is_certain()) {
      add("GPU toolkit", CheckLevel::ok,
          "the engine gives GPUs by " + methods +
              (has_gpu || !endpoint.is_of_this_machine() ? "" : "; this machine itself has none"));
    } else if (std::ranges::find(access.methods(), docker::GpuMethod::cdi) !=
               access.methods().end()) {
      add("GPU toolkit", has_gpu ? CheckLevel::warn : CheckLevel::ok,
          "the engine reads CDI specifications, but does not report whether one is NVIDIA's",
          {"`nvidia-ctk cdi list` on its machine lists the GPUs; if it lists none: sudo nvidia-ctk "
           "cdi generate --output=/etc/cdi/nvidia.yaml",
           "Docker Engine 28.2 and newer report it"});
    } else if (has_gpu) {
      add("GPU toolkit", CheckLevel::warn,
          "this machine has an NVIDIA GPU, but the engine cannot give it to containers",
          {"sudo apt-get install nvidia-container-toolkit (from NVIDIA's repository), then: sudo "
           "nvidia-ctk runtime configure --runtime=docker && "
           "sudo systemctl restart docker",
           "without it, `--orchestrator local` has the GPUs"});
    } else {
      add("GPU toolkit", CheckLevel::ok,
          endpoint.is_of_this_machine() ? "none, and no NVIDIA GPU" : "the engine names none");
    }
  }

  void check_gpus() {
    const auto inventory = gpu::Machine().read();
    std::error_code error;
    if (inventory.unavailable) {
      has_gpu_ = std::filesystem::exists("/dev/nvidiactl", error) || std::getenv("PIPE_NVML");
      add("GPUs", has_gpu_ ? CheckLevel::warn : CheckLevel::ok, inventory.unavailable->reason,
          has_gpu_ ? inventory.unavailable->advice : std::vector<std::string>{});
      return;
    }
    has_gpu_ = !inventory.devices.empty();
    const auto units = gpu::units_of(inventory);
    std::vector<std::string> fixes;
    for (const auto& device : inventory.devices)
      if (!device.trouble.empty())
        fixes.push_back("GPU " + std::to_string(device.index) + ": " + device.trouble +
                        "; `dmesg | grep -i nvrm` says more");
    std::string found = core::counted(units.size(), "GPU") + " that can be used";
    if (!units.empty()) found += " (" + kinds_of(units) + ")";
    found += ", driver " + inventory.driver;
    if (!inventory.hidden_notice.empty()) found += "; " + inventory.hidden_notice;
    add("GPUs", fixes.empty() ? CheckLevel::ok : CheckLevel::warn, std::move(found),
        std::move(fixes));
    settings::GpuRequest all;
    all.selection = settings::GpuRequest::Selection::all;
    if (auto cuda = gpu::runnable_cuda(gpu::host_for(all, inventory)); !cuda.empty())
      add("CUDA", CheckLevel::ok, std::move(cuda));
    try {
      gpu::LockFolder::existing();
    } catch (const core::EnvironmentError& failed) {
      add("GPU locks", CheckLevel::fail, failed.what(), failed.advice());
    }
  }

  /// Returns `4 x Tesla V100-SXM2-16GB`.
  static std::string kinds_of(const std::vector<gpu::Unit>& units) {
    std::map<std::string, std::size_t> kinds;
    for (const auto& unit : units)
      ++kinds[unit.model + (unit.profile.empty() ? "" : " " + unit.profile)];
    std::string text;
    for (const auto& [kind, count] : kinds)
      text += (text.empty() ? "" : ", ") + std::to_string(count) + " x " + kind;
    return text;
  }

  void check_runc(const json& version) {
    const auto* components = core::member(version, "Components");
    if (!components) return;
    for (const auto& component : *components) {
      if (docker::text_at(component, "Name") != "runc") continue;
      const auto text = docker::text_at(component, "Version");
      if (core::is_older(text, {1, 1, 12})) {
        add("runc", CheckLevel::warn,
            text +
                " is older than 1.1.12: CVE-2024-21626 lets a container out, unless the "
                "distribution has fixed its package",
            {"on Debian 12: `apt list --installed runc` should show 1.1.5+ds1-1+deb12u1 or later; "
             "else update containerd.io or runc"});
      } else {
        add("runc", CheckLevel::ok, text);
      }
    }
  }

  void check_credentials() {
    try {
      const auto config = docker::config_file();
      std::vector<std::string> registries;
      for (const auto* key : {"credHelpers", "auths"})
        if (const auto entries = config.find(key); entries != config.end() && entries->is_object())
          for (const auto& [registry, ignored] : entries->items())
            if (std::ranges::find(registries, registry) == registries.end())
              registries.push_back(registry);
      std::string names;
      bool are_all_usable = true;
      for (const auto& registry : registries) {
        const auto auth = workspace_.await(docker::registry_auth(registry));
        if (!auth.notice.empty()) {
          add("credentials", CheckLevel::warn, registry + ": " + auth.notice,
              {"`docker login " + registry + "`, or fix the helper that " +
               (docker::config_folder() / "config.json").string() + " names"});
          are_all_usable = false;
        }
        names += (names.empty() ? "" : ", ") + registry;
      }
      if (are_all_usable)
        add("credentials", CheckLevel::ok,
            names.empty() ? "none stored; public images need none" : "for " + names);
    } catch (const core::EnvironmentError& error) {
      add("credentials", CheckLevel::warn, error.what(), error.advice());
    }
  }

  /// Reports nothing where Slurm's commands are missing: few machines are login nodes.
  void check_slurm() {
    const auto [version, is_installed] = output_of({"sbatch", "--version"});
    if (!is_installed) return;
    if (const auto [partitions, answers] = output_of({"sinfo", "--noheader", "--format=%R"});
        answers)
      add("Slurm", CheckLevel::ok,
          version + ", for `--orchestrator slurm`; partitions: " +
              core::joined(core::lines_of(partitions), ", "));
    else
      add("Slurm", CheckLevel::warn, version + ", whose controller does not answer",
          {"`scontrol ping` says more"});
    if (!output_of({"mksquashfs", "-version"}).second)
      add("Slurm", CheckLevel::ok,
          "mksquashfs is missing; only profiles with `container_runtime` need it (docs/slurm.md)");
  }

  /// Asks the service that the profile names, such as the login node of a cluster.
  void check_service() try {
    const auto& options = workspace_.options();
    if (options.connection.empty()) return;
    const auto state = workspace_.existing_state();
    const auto orchestrator =
        make_orchestrator(workspace_, options.orchestrator,
                          {.state = state.value_or(std::filesystem::path(".pipe")),
                           .connection = options.connection});
    const auto found = workspace_.await(orchestrator->service());
    workspace_.await(orchestrator->settle());
    if (!found.empty()) add("cluster", CheckLevel::ok, found);
  } catch (const core::EnvironmentError& error) {
    add("cluster", CheckLevel::fail, error.what(), error.advice());
  }

  void check_python() {
    const auto [version, has_python] = output_of({"python3", "-I", "--version"});
    if (!has_python) {
      add("Python", CheckLevel::warn, "python3 is missing; only `--orchestrator local` needs it",
          {"on Debian: apt-get install python3 python3-venv"});
    } else if (!output_of({"python3", "-I", "-c", "import venv, ensurepip"}).second) {
      add("Python", CheckLevel::warn,
          version +
              " without venv; `--orchestrator local` needs it for steps with requirements, unless "
              "there is uv",
          {"on Debian: apt-get install python3-venv"});
    } else {
      add("Python", CheckLevel::ok, version + ", for `--orchestrator local`");
    }
    if (orchestrators::processes::Sandbox::is_available())
      add("Landlock", CheckLevel::ok, "local steps read only their code, inputs and the system");
    else
      add("Landlock", CheckLevel::warn,
          "this kernel lacks Landlock: local steps can read all your files, also those that their "
          "keys do not cover",
          {"Linux 5.19 or newer, with `landlock` in its `lsm=` list, restricts them"});
    const auto [uv, has_uv] = output_of({"uv", "--version"});
    add("uv", CheckLevel::ok,
        has_uv ? uv
               : "not installed; `--orchestrator local` fetches it once into its own cache, and "
                 "uses pip where it cannot");
  }

  /// Reports whether the folder can be made.
  void check_new_state(const std::filesystem::path& folder) {
    auto existing = folder;
    std::error_code error;
    while (!std::filesystem::exists(existing, error) && existing.has_relative_path())
      existing = existing.parent_path();
    try {
      const core::TemporaryFolder tried(existing, ".pipe-doctor-");
      add("state", CheckLevel::ok, "no runs here yet");
    } catch (const core::EnvironmentError& failed) {
      add("state", CheckLevel::warn,
          "no runs here yet, and " + shown_path(folder) + " cannot be made: " + failed.what(),
          {"run from a folder that you may write into, or name one with --state DIR"});
    }
  }

  void check_state() {
    const auto state = workspace_.existing_state();
    if (!state) {
      check_new_state(workspace_.state_beside(std::filesystem::current_path() / "pipeline.yaml"));
      check_disk("disk", std::filesystem::current_path(), "free some space");
      return;
    }
    try {
      std::size_t dead = 0;
      auto& store = workspace_.store(*state);
      const auto runs = store.runs().list();
      for (const auto& run : runs)
        dead += run.status == RunStatus::running &&
                store.drivers().liveness(run) == store::Liveness::dead;
      if (!store::is_local_file_system(*state))
        add("state", CheckLevel::ok,
            shown_path(*state) +
                " is on a file system that machines may share: no write-ahead log, and drivers "
                "there have heartbeats");
      if (dead) {
        add("state", CheckLevel::warn,
            core::counted(dead, "run") + " died without an end, in " + shown_path(*state),
            {"the next `pipe run` there, or `pipe clean --containers`, removes their remains"});
      } else {
        add("state", CheckLevel::ok,
            core::counted(runs.size(), "run") + " in " + shown_path(*state));
      }
    } catch (const core::EnvironmentError& error) {
      add("state", CheckLevel::fail, error.what(), error.advice());
    }
    check_disk("disk", *state, "`pipe clean --runs --keep 5` removes old runs and their artifacts");
  }

  Workspace& workspace_;
  std::vector<MachineCheck> checks_;
  bool has_gpu_ = false;
};

}  // namespace

std::vector<MachineCheck> check_machine(Workspace& workspace) {
  return MachineChecks(workspace).examine();
}

}  // namespace pipeline::driver
