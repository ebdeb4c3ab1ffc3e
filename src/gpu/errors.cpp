#include "gpu/errors.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "core/text.hpp"

namespace pipeline::gpu {
namespace {

/// An error and its explanation. A row matches a text that contains both parts. `{}` in the cause
/// is replaced by the text after `capture`, up to a blank, comma or line end.
struct Row {
  std::string_view part, also;  ///< Lower case; `also` may be empty.
  std::string_view cause;
  std::array<std::string_view, 3> advice;
  std::string_view capture = {};
  bool is_transient = false;  ///< See GpuTrouble.
};

constexpr std::string_view install_toolkit =
    "on the engine's machine: install the NVIDIA Container Toolkit (package "
    "nvidia-container-toolkit), then "
    "`sudo nvidia-ctk runtime configure --runtime=docker` and `sudo systemctl restart docker`";
constexpr std::string_view driver_first =
    "the NVIDIA driver comes first: `nvidia-smi` must work on that machine outside of containers";
constexpr std::string_view install_driver =
    "install the driver there (Debian: `sudo apt-get install nvidia-driver`), and restart the "
    "machine";
constexpr std::string_view reload_driver =
    "restart that machine; or stop what uses the GPUs, and `sudo rmmod nvidia_uvm nvidia_drm "
    "nvidia_modeset nvidia "
    "&& sudo modprobe nvidia`";
constexpr std::string_view make_specification =
    "on the engine's machine: `sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`, again "
    "after each change of driver, GPUs or MIG devices";
constexpr std::string_view look_for_faults =
    "on that machine `sudo dmesg | grep NVRM` says what happened; the GPU comes back with a "
    "restart, or is broken";
constexpr std::string_view older_image =
    "or take a parent image with an older CUDA: `nvidia-smi` there shows the newest that the "
    "driver can run";
constexpr std::string_view newer_driver =
    "update the NVIDIA driver of the machine that the step runs on";

using Advice = std::array<std::string_view, 3>;
constexpr Advice program_missing{
    "on the engine's machine: install nvidia-container-toolkit again, or take the runtime out of "
    "/etc/docker/daemon.json"};
constexpr Advice more_memory{
    "lower the batch size, or ask for a larger GPU: `gpu_memory` in `resources`",
    "`pipe gpus` shows whether another process occupies it"};
constexpr Advice see_gpus{
    "something sets CUDA_VISIBLE_DEVICES: take it out of the image, `environment` or the program",
    "`compute` must be among NVIDIA_DRIVER_CAPABILITIES"};
constexpr std::string_view skip_check =
    "if you know that it works all the same, skip the check: `runtime_environment: "
    "{NVIDIA_DISABLE_REQUIRE: \"1\"}`";
constexpr Row lost_access{
    "failed to initialize nvml: unknown error",
    "",
    "the container has lost its access to the GPUs: something like `systemctl daemon-reload` took "
    "its devices away while it ran",
    {"run it again: a new container has its devices",
     "so that it does not happen again: `sudo nvidia-ctk system create-dev-char-symlinks "
     "--create-all` on the engine's machine, or "
     "`\"exec-opts\": [\"native.cgroupdriver=cgroupfs\"]` in /etc/docker/daemon.json"},
    {},
    true};

/// Errors of engines, NVIDIA's toolkit and nvidia-smi. The first match is used: specific texts come
/// before general ones.
constexpr std::array refusals{
    Row{"could not select device driver \"cdi\"",
        "",
        "the engine was asked for GPUs by CDI, and its CDI is off",
        {"Docker Engine 28.2 and newer have it on; for 25 to 28.1 put `\"features\": {\"cdi\": "
         "true}` into /etc/docker/daemon.json, and restart "
         "docker",
         make_specification}},
    Row{"could not select device driver \"\"",
        "",
        "the engine cannot give GPUs to containers: it has no NVIDIA Container Toolkit",
        {install_toolkit, driver_first}},
    Row{"could not select device driver \"nvidia\"",
        "",
        "the engine cannot give GPUs to containers: it has no NVIDIA Container Toolkit",
        {install_toolkit, driver_first}},
    Row{"could not select device driver",
        "",
        "the engine has no device driver of the name that `gpus` gives",
        {"leave `driver=` out: the engine then takes NVIDIA's"}},
    Row{"unknown runtime specified nvidia",
        "",
        "the engine has no runtime `nvidia`",
        {install_toolkit}},
    Row{"invalid runtime name: nvidia",
        "",
        "the engine has no runtime `nvidia`",
        {install_toolkit}},
    Row{"fork/exec", "nvidia-container-runtime: no such file",
        "the engine's runtime `nvidia` names a program that does not exist", program_missing},
    Row{"exec: \"nvidia-container-runtime\"", "executable file not found",
        "the engine's runtime `nvidia` names a program that does not exist", program_missing},
    Row{"cannot set both count and deviceids",
        "",
        "a number of GPUs and a list of GPUs were asked for at once",
        {"write either `count=2` or `device=0,1` in `gpus`, not both"}},
    Row{"unexpected count in cdi device request",
        "",
        "CDI takes names of GPUs, not a number of them",
        {"name them: `gpus: device=0,1`"}},
    Row{"unexpected options in cdi device request",
        "",
        "CDI takes no options",
        {"take `options=` out of `gpus`"}},
    Row{"unsatisfied condition: cuda",
        "",
        "the driver is too old for the image: it needs CUDA {}",
        {newer_driver, older_image, skip_check},
        "unsatisfied condition: cuda"},
    Row{"unsatisfied condition:",
        "",
        "the image asks for another GPU or driver than this machine has",
        {"take a parent image for this GPU and driver: its NVIDIA_REQUIRE_CUDA says what it needs",
         skip_check}},
    Row{"unresolvable cdi devices",
        "",
        "the engine's CDI specification has no device {}",
        {make_specification, "`nvidia-ctk cdi list` there shows what it has"},
        "unresolvable cdi devices"},
    Row{"cdi device injection failed",
        "",
        "the engine could not give the GPUs by CDI",
        {make_specification}},
    Row{"invoking the nvidia container runtime hook directly",
        "",
        "NVIDIA's toolkit is in CDI mode there, and refuses device requests of the engine",
        {"set `mode = \"auto\"` in /etc/nvidia-container-runtime/config.toml, or register its "
         "runtime: `sudo nvidia-ctk runtime configure "
         "--runtime=docker`"}},
    Row{"device error:",
        "unknown device",
        "the engine's machine has no GPU {}",
        {"`nvidia-smi -L` there lists what it has: name one of those, or leave the choice to pipe "
         "(`gpu_count`)",
         "a GPU that was there before has dropped off the bus: `sudo dmesg | grep NVRM` says so, a "
         "restart brings it back"},
        "device error:"},
    Row{"driver/library version mismatch",
        "",
        "the NVIDIA driver was updated while its old kernel module is still loaded",
        {reload_driver}},
    Row{"driver not loaded",
        "",
        "the NVIDIA driver is not loaded",
        {"`sudo modprobe nvidia`, or restart that machine", install_driver}},
    Row{"libnvidia-ml.so",
        "load library failed",
        "the engine's machine has no NVIDIA driver",
        {install_driver,
         "an engine in a virtual machine (Docker Desktop, WSL 2) needs the driver of its host"}},
    Row{"couldn't find libnvidia-ml.so",
        "",
        "the driver's libraries are not in the container",
        {"`utility` must be among the driver capabilities: `runtime_environment: "
         "{NVIDIA_DRIVER_CAPABILITIES: \"compute,utility\"}`",
         "an image that brings an `nvidia-smi` of its own needs an engine that gives it the "
         "driver: `pipe doctor`"}},
    Row{"couldn't communicate with the nvidia driver",
        "",
        "the NVIDIA driver does not run on this machine",
        {"`sudo modprobe nvidia` there; after a new kernel the driver has to be built for it: "
         "`sudo apt-get install --reinstall nvidia-kernel-dkms`",
         install_driver}},
    Row{"no devices were found",
        "",
        "the NVIDIA driver runs but finds no GPU",
        {"`lspci | grep -i nvidia` shows whether the machine has one; a virtual machine needs it "
         "passed through",
         look_for_faults}},
    lost_access,
    Row{"insufficient permissions",
        "nvml",
        "the user that the step runs as may not open the GPUs' device files",
        {"give /dev/nvidia* to all (`NVreg_DeviceFileMode=0666`), or run as a user of their group: "
         "`run_args: {group_add: [video]}`"}},
    Row{"unable to determine the device handle for gpu",
        "",
        "a GPU does not answer its driver any more",
        {look_for_faults},
        {},
        true},
    Row{"gpu is lost", "", "a GPU has dropped off the bus", {look_for_faults}, {}, true},
    Row{"nvidia-container-cli",
        "bpf_prog",
        "NVIDIA's toolkit may not change the container's device rules",
        {"a rootless engine needs `no-cgroups = true` in "
         "/etc/nvidia-container-runtime/config.toml"}},
    Row{"nvidia-container-cli",
        "cgroup",
        "NVIDIA's toolkit cannot handle this machine's control groups",
        {"update nvidia-container-toolkit: control groups of version 2 need 1.8 or newer",
         "a rootless engine needs `no-cgroups = true` in "
         "/etc/nvidia-container-runtime/config.toml"}},
    Row{"nvidia-container-cli",
        "ldcache error",
        "NVIDIA's toolkit does not find this system's ldconfig",
        {"set `ldconfig = \"@/sbin/ldconfig\"` in /etc/nvidia-container-runtime/config.toml "
         "(`@/sbin/ldconfig.real` on Ubuntu)"}},
    Row{"nvidia-container-cli",
        "",
        "NVIDIA's toolkit refused",
        {driver_first,
         "`sudo nvidia-container-cli -k -d /dev/tty info` there shows where it fails"}},
    Row{"failed to initialize nvml", "", "nvidia-smi cannot talk to the driver", {driver_first}},
};

/// Errors that a step's program prints. The first match is used.
constexpr std::array program_errors{
    lost_access,
    Row{"cuda driver version is insufficient",
        "",
        "the driver is too old for the CUDA that the program brings",
        {newer_driver, older_image}},
    Row{"the nvidia driver on your system is too old",
        "",
        "the driver is too old for the CUDA that the program brings",
        {newer_driver, "or install the framework for an older CUDA, such as `torch==2.3.1+cu118`"}},
    Row{"torch not compiled with cuda enabled",
        "",
        "the PyTorch in the image is the one for CPUs",
        {"take `+cpu` and the CPU index out of `requirements`; the wheels of PyPI have CUDA"}},
    Row{"no kernel image is available",
        "",
        "the program has no code for this GPU's compute capability",
        {"take a newer version of the framework, or one built for this GPU; `compute_capability` "
         "in `resources` asks for a GPU that it knows"}},
    Row{"devices are busy or unavailable",
        "",
        "another process holds the GPU, which is in exclusive mode",
        {"`auto_select_gpus: true` takes only GPUs that no process occupies; `pipe gpus` shows who "
         "holds each"},
        {},
        true},
    Row{"cuda out of memory", "", "the GPU's memory did not suffice", more_memory},
    Row{"cuda_error_out_of_memory", "", "the GPU's memory did not suffice", more_memory},
    Row{"cuda error: out of memory", "", "the GPU's memory did not suffice", more_memory},
    Row{"cudaerrormemoryallocation", "", "the GPU's memory did not suffice", more_memory},
    Row{"cublas_status_alloc_failed", "", "the GPU's memory did not suffice", more_memory},
    Row{"oom when allocating tensor", "", "the GPU's memory did not suffice", more_memory},
    Row{"resource_exhausted: out of memory", "", "the GPU's memory did not suffice", more_memory},
    Row{"dataloader worker",
        "bus error",
        "/dev/shm was too small for the data loader's workers",
        {"raise `shm_size` in `resources`"}},
    Row{"insufficient shared memory",
        "",
        "/dev/shm was too small for the data loader's workers",
        {"raise `shm_size` in `resources`"}},
    Row{"libcuda.so.1",
        "cannot open shared object",
        "the driver's CUDA library is not in the container",
        {"`compute` must be among the driver capabilities: `runtime_environment: "
         "{NVIDIA_DRIVER_CAPABILITIES: \"compute,utility\"}`"}},
    Row{"uncorrectable ecc error", "", "the GPU's memory is faulty", {look_for_faults}, {}, true},
    Row{"no cuda-capable device is detected", "",
        "the program sees no GPU although the step holds some", see_gpus},
    Row{"no cuda gpus are available", "", "the program sees no GPU although the step holds some",
        see_gpus},
};

/// Errors of a program that looks for a GPU in a step without one.
constexpr std::array signs_of_no_gpu{
    "no cuda-capable device is detected", "no cuda gpus are available",
    "found no nvidia driver on your system", "libcuda.so.1: cannot open shared object",
    "torch.cuda.is_available() is false"};

/// Returns the word after `mark` in the text: `>=12.2`, `GPU-1f3a`.
std::string captured(std::string_view text, const std::string& lowered, std::string_view mark) {
  const auto at = lowered.find(mark);
  if (at == lowered.npos) return {};
  const auto begin = text.find_first_not_of(" ", at + mark.size());
  if (begin == text.npos) return {};
  auto found = std::string(text.substr(begin, text.find_first_of(" ,\n", begin) - begin));
  while (!found.empty() && (found.back() == ':' || found.back() == '.')) found.pop_back();
  return found;
}

/// Returns the explanation of the first row that matches. @param lowered `text` in lower case
template <std::size_t size>
std::optional<GpuTrouble> look_up(const std::array<Row, size>& rows, std::string_view text,
                                  const std::string& lowered) {
  for (const auto& row : rows) {
    if (lowered.find(row.part) == lowered.npos || lowered.find(row.also) == lowered.npos) continue;
    GpuTrouble trouble{std::string(row.cause), {}, row.is_transient};
    if (const auto placeholder = trouble.cause.find("{}"); placeholder != std::string::npos)
      trouble.cause.replace(placeholder, 2, captured(text, lowered, row.capture));
    for (const auto advice : row.advice)
      if (!advice.empty()) trouble.advice.emplace_back(advice);
    return trouble;
  }
  return std::nullopt;
}

}  // namespace

std::optional<GpuTrouble> gpu_trouble(std::string_view text) {
  return look_up(refusals, text, core::lower(text));
}

std::optional<GpuTrouble> gpu_trouble_in_log(std::string_view log, bool has_gpus) {
  const auto lowered = core::lower(log);
  if (has_gpus) return look_up(program_errors, log, lowered);
  if (std::none_of(signs_of_no_gpu.begin(), signs_of_no_gpu.end(),
                   [&](std::string_view sign) { return lowered.find(sign) != lowered.npos; }))
    return std::nullopt;
  return GpuTrouble{"the program looks for a GPU, and the step holds none",
                    {"ask for one: `resources: {gpu_count: 1}`"},
                    false};
}

}  // namespace pipeline::gpu
