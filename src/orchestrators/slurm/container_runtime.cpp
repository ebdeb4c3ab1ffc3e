#include "orchestrators/slurm/container_runtime.hpp"

#include <algorithm>

#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/identifier.hpp"
#include "core/joined.hpp"
#include "orchestrators/slurm/podman_script.hpp"

namespace pipeline::orchestrators::slurm {
namespace {

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// Returns the words that name the image, each after a space; none for Podman, whose image is among
/// podman_words().
std::string image_words(std::string_view program, const std::string& image) {
  if (program == "podman") return {};
  return " " + core::shell_quote(image) + (program == "ch-run" ? " --" : "");
}

/// A runtime, by the name of its program on a node.
struct Runtime {
  const char *name, *program;
  const char* prefix;  ///< Words before the program, each followed by a space.
  /// Returns the words between the program and the image, each after a space; for Podman those
  /// between the program and the command.
  std::string (*words)(const ContainerStart& start);
};

std::string unchanged(const std::string& path) { return path; }

/// Returns a path as a field of fstab(5).
std::string fstab_field(const std::string& path) {
  std::string field;
  for (const char c : path)
    field += c == ' ' ? "\\040" : c == '\t' ? "\\011" : c == '\\' ? "\\134" : std::string(1, c);
  return field;
}

/// Returns ` --bind SOURCE:TARGET:ro` for each bind, with this option and these endings.
std::string binds_text(const ContainerStart& start, const char* option, const char* read_only,
                       const char* writable,
                       std::string (*written)(const std::string& path) = unchanged) {
  std::string text;
  for (const auto& bind : start.binds)
    text += std::string(" ") + option +
            core::shell_quote(written(bind.source) + ":" + written(bind.target) +
                              (bind.is_read_only ? read_only : writable));
  return text;
}

/// See apptainer-exec(1). Apptainer passes on all variables, but the job's script has removed those
/// that the step does not get. The container's own /dev has the devices of `--nv`. The time zone is
/// the image's, not the node's.
std::string apptainer_words(const ContainerStart& start) {
  return std::string(" exec --contain --ipc --no-home --no-mount /etc/localtime") +
         (start.has_gpus ? " --nv" : "") + " --bind \"$temporary/tmp:/tmp\"" +
         binds_text(start, "--bind ", ":ro", "");
}

/// Variables that override the cluster's enroot.conf. A login shell would read the image's profile.
/// In a process namespace of its own, a step could not be signalled by its process number.
constexpr const char* enroot_variables =
    "env ENROOT_RUNTIME_PATH=\"$temporary/enroot\" ENROOT_DATA_PATH=\"$temporary/enroot\" "
    "ENROOT_LOGIN_SHELL=no ENROOT_MOUNT_HOME=no ENROOT_REMAP_ROOT=no ENROOT_ROOTFS_WRITABLE=no "
    "ENROOT_UNSHARE_PID=no ";

/// Shell code that prints ` --env NAME` for each variable by which Slurm describes a job.
constexpr const char* variables_of_job =
    " $(env | sed -n 's/^\\(\\(SLURM\\|CUDA\\|PIPE_NODE\\)[A-Z_0-9]*\\)=.*/--env \\1/p')";

/// See enroot's doc/cmd/start.md and doc/image-format.md. Enroot passes on only the variables that
/// are named, and its hook for NVIDIA's libraries and devices reads NVIDIA_VISIBLE_DEVICES.
std::string enroot_words(const ContainerStart& start) {
  return " start --env NVIDIA_VISIBLE_DEVICES=" + std::string(start.has_gpus ? "all" : "void") +
         (start.has_gpus ? " --env NVIDIA_DRIVER_CAPABILITIES=compute,utility" : "") +
         variables_of_job + " --mount \"$temporary/tmp:/tmp:none:bind,rw\"" +
         binds_text(start, "--mount ", ":none:x-create=auto,bind,ro", ":none:x-create=auto,bind,rw",
                    fstab_field);
}

/// See ch-run(1). Charliecloud passes on all variables, and has neither read-only mounts nor
/// NVIDIA's libraries.
std::string charliecloud_words(const ContainerStart& start) {
  return " --mount=\"$temporary/image\" --bind=\"$temporary/tmp:/tmp\"" +
         binds_text(start, "--bind=", "", "");
}

/// See podman-run(1) and in_podman(). The step's user in the container is 0, which is the job's
/// user on the node, without capabilities; so /etc/subuid needs no line for the user. The container
/// stays in the job's cgroup; without a cgroup of its own, Podman demands a process namespace.
std::string podman_words(const ContainerStart& start) {
  return " " + core::shell_quote(start.image) +
         " --rm --conmon-pidfile=\"$temporary/podman/conmon\" --pidfile=\"$temporary/podman/agent\""
         " --read-only --userns=host --pid=private --network=host --ipc=private --shm-size=0"
         " --cgroups=disabled --ulimit=host --group-add=keep-groups --cap-drop=all"
         " --security-opt=no-new-privileges --security-opt=label=disable"
         " --http-proxy=false --env-host=false --unsetenv-all" +
         variables_of_job +
         " $(if [ -t 0 ]; then echo --interactive --tty --log-driver=none --detach-keys=;"
         " else echo --log-driver=passthrough; fi)" +
         (start.has_gpus ? " --device nvidia.com/gpu=all" : "") +
         " --volume \"$temporary/tmp:/tmp\"" + binds_text(start, "--volume ", ":ro", "") +
         " --rootfs \"$temporary/image:O\"";
}

constexpr Runtime runtimes[] = {{"apptainer", "apptainer", "", apptainer_words},
                                {"apptainer", "singularity", "", apptainer_words},
                                {"enroot", "enroot", enroot_variables, enroot_words},
                                {"charliecloud", "ch-run", "", charliecloud_words},
                                {"podman", "podman", "in_podman ", podman_words}};

bool is_chosen(const Runtime& runtime, const std::string& wanted) {
  return wanted == "any" || wanted == runtime.name ||
         (wanted.starts_with('/') && file_name(wanted) == runtime.program);
}

}  // namespace

const std::vector<std::string>& container_runtimes() {
  static const std::vector<std::string> names{"any", "apptainer", "enroot", "charliecloud",
                                              "podman"};
  return names;
}

void check_container_runtime(const std::string& runtime) {
  if (std::ranges::any_of(runtimes,
                          [&](const Runtime& known) { return is_chosen(known, runtime); }))
    return;
  throw core::InputError("'" + runtime + "' is not a container runtime of Slurm's jobs; they are " +
                             core::joined(container_runtimes(), ", ") +
                             ", or the path of such a program on the nodes",
                         core::did_you_mean(runtime, container_runtimes()));
}

std::string container_commands(const ContainerStart& start) {
  for (const auto& bind : start.binds)
    if (bind.source.find_first_of(":,\n") != std::string::npos)
      throw core::EnvironmentError(
          "no container runtime can mount " + bind.source +
              ": the runtimes take a colon, a comma or a line end for the end of a path",
          {"move the state folder (PIPE_HOME), or choose other names of the step's files"});
  const bool is_path = start.runtime.starts_with('/');
  std::string names, cases, functions;
  for (const auto& runtime : runtimes) {
    if (!is_chosen(runtime, start.runtime)) continue;
    if (runtime.program == std::string_view("podman")) functions = podman_function;
    const auto program = is_path ? start.runtime : std::string(runtime.program);
    names += (names.empty() ? "" : " ") + core::shell_quote(program);
    cases += "  " + core::shell_quote(program) + ") set -- " + runtime.prefix + "\"$runtime\"" +
             runtime.words(start) + image_words(runtime.program, start.image);
    for (const auto& word : start.command) cases += " " + core::shell_quote(word);
    cases += " ;;\n";
  }
  return functions +
         "runtime=\n"
         "for name in " +
         names +
         "; do\n"
         "  if command -v \"$name\" >/dev/null; then runtime=$name; break; fi\n"
         "done\n"
         "mkdir \"$temporary/tmp\" \"$temporary/image\" || exit 1\n"
         "USER=$(id -un) HOME=$temporary\n"
         "export USER HOME\n"
         "case $runtime in\n" +
         cases +
         "  *)\n"
         "    echo " +
         core::shell_quote("this node has no container runtime (" + names +
                           ") among /usr/local/bin, /usr/bin and /bin") +
         " >&2\n"
         "    without_container\n"
         "    ;;\n"
         "esac\n";
}

}  // namespace pipeline::orchestrators::slurm
