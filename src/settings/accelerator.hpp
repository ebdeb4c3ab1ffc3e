/// @file
/// A request for GPUs, parsed from any of its notations: ZenML's `gpu_count`, PyTorch Lightning's
/// `accelerator` and `devices`, or docker's and GitLab Runner's `gpus`. These functions are pure:
/// they do not look at the machine's GPUs (src/gpu does).
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pipeline/settings.hpp>

namespace pipeline::settings {

/// A GPU as the user names it: by index, by UUID, or a MIG device by UUID or as GPU:INSTANCE.
struct GpuDevice {
  std::optional<unsigned> index;  ///< Index in nvidia-smi's order.
  std::optional<unsigned> mig;    ///< With `index`: the MIG device on that GPU, as in `0:1`.
  std::string uuid;  ///< `GPU-...`, `MIG-...`, or a unique prefix of one; empty with `index`.
  std::string text() const;
  bool operator==(const GpuDevice&) const = default;
};

/// Parses `0`, `GPU-8932f937-...`, `MIG-...` or `0:1`; returns nothing for any other text.
std::optional<GpuDevice> parse_gpu_device(std::string_view text);

/// CUDA compute capability, such as `8.0`: the version of the GPU's instruction set.
struct ComputeCapability {
  unsigned major = 0, minor = 0;
  std::string text() const { return std::to_string(major) + "." + std::to_string(minor); }
  auto operator<=>(const ComputeCapability&) const = default;
};
/// Parses `8.0`; returns nothing for any other text.
std::optional<ComputeCapability> parse_compute_capability(std::string_view text);

/// The GPUs that a step asks for.
struct GpuRequest {
  enum class Selection {
    none,
    count,    ///< Any `count` GPUs.
    first,    ///< The GPUs with the indices 0 to `count` - 1; on a cluster, where indices mean
              ///< nothing, any `count`.
    all,      ///< Every GPU of the machine.
    devices,  ///< The GPUs listed in `devices`.
  };
  Selection selection = Selection::none;
  unsigned count = 0;              ///< Set for `count` and `first`; > 0.
  std::vector<GpuDevice> devices;  ///< Set for `devices`: at least one, without duplicates.
  /// `accelerator: auto`: on a machine without GPUs, the step runs without one.
  bool if_present = false;
  bool auto_select = false;  ///< Only GPUs that no process uses; with `count` or `all`.

  // Requirements that each of the GPUs has to satisfy.
  std::optional<std::string> model;  ///< Compared by gpu::model_matches().
  std::optional<Bytes> min_memory;
  std::optional<ComputeCapability> min_capability;

  // Further options of docker's `--gpus`; empty if not given.
  std::string driver;
  std::vector<std::string> capabilities;  ///< Without `gpu`, which is always implied.
  std::map<std::string, std::string> options;

  bool preflight = true;  ///< Whether the step runs nvidia-smi before its command.

  bool wanted() const { return selection != Selection::none; }
  bool operator==(const GpuRequest&) const = default;
};

/// An error in a request for GPUs, with the key that it is about.
struct GpuProblem {
  std::string code;                 ///< Same as Diagnostic::code.
  std::string key;                  ///< The key in ResourceSettings.
  std::optional<std::size_t> item;  ///< Index of the item, if the key's value is a list.
  std::string message;
  std::vector<std::string> notes;
  std::string suggestion;
};

/// Returns the request. Appends errors to `problems`; with errors, the request must not be used.
GpuRequest gpu_request(const ResourceSettings& resources, std::vector<GpuProblem>& problems);
/// Returns the request of settings that have been checked. Throws InputError for invalid settings,
/// which a program or a fuzzer can build.
GpuRequest gpu_request(const ResourceSettings& resources);

/// Removes from `merged` the pipeline's keys that contradict the step's request for GPUs, such as
/// the pipeline's `devices` if the step has `gpu_count`.
void merge_gpu_settings(ResourceSettings& merged, const ResourceSettings& pipeline,
                        const ResourceSettings& step);

}  // namespace pipeline::settings
