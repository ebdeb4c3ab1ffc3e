/// @file
/// One request for GPUs, however the user wrote it: ZenML's `gpu_count`, PyTorch Lightning's
/// `accelerator` and `devices`, or docker's and GitLab Runner's `gpus`. Pure: what the machine has
/// is not asked here (src/gpu does).
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pipeline/settings.hpp>

namespace pipeline::settings {

/// One GPU as the user names it: by index, by UUID, or a MIG device by UUID or as GPU:INSTANCE.
struct GpuDevice {
  std::optional<unsigned> index;  ///< As nvidia-smi counts.
  std::optional<unsigned> mig;    ///< With `index`: the MIG device on that GPU, as `0:1`.
  std::string
      uuid;  ///< `GPU-...`, `MIG-...`, or a prefix of one that has to be unique; without `index`.
  std::string text() const;
  bool operator==(const GpuDevice&) const = default;
};

/// `0`, `GPU-8932f937-...`, `MIG-...` or `0:1`; nothing for what is none of them.
std::optional<GpuDevice> parse_gpu_device(std::string_view text);

/// `8.0`: what the GPU's instructions are.
struct ComputeCapability {
  unsigned major = 0, minor = 0;
  std::string text() const { return std::to_string(major) + "." + std::to_string(minor); }
  auto operator<=>(const ComputeCapability&) const = default;
};
std::optional<ComputeCapability> parse_compute_capability(std::string_view text);

struct GpuRequest {
  enum class Selection {
    none,
    count,  ///< Any `count` GPUs.
    first,  ///< The GPUs with the indices 0 to `count` - 1; where indices mean nothing (a cluster),
            ///< any `count`.
    all,    ///< Every GPU of the machine.
    devices,  ///< Those of `devices`, no other.
  };
  Selection selection = Selection::none;
  unsigned count = 0;              ///< With `count` and `first`; > 0.
  std::vector<GpuDevice> devices;  ///< With `devices`: at least one, each once.
  bool if_present =
      false;  ///< `accelerator: auto`: a machine without GPUs is fine, the step then gets none.
  bool auto_select = false;  ///< Only GPUs that no process occupies; with `count` or `all`.

  // What each of the GPUs has to be.
  std::optional<std::string> model;  ///< gpu::model_matches() compares.
  std::optional<Bytes> min_memory;
  std::optional<ComputeCapability> min_capability;

  // docker's further options, empty where not given.
  std::string driver;
  std::vector<std::string> capabilities;  ///< Without `gpu`, which is always meant.
  std::map<std::string, std::string> options;

  bool preflight = true;

  bool wanted() const { return selection != Selection::none; }
  bool operator==(const GpuRequest&) const = default;
};

/// What is wrong with how GPUs are asked for: the key, for a list also which of its items.
struct GpuProblem {
  std::string code;  ///< As Diagnostic::code.
  std::string key;   ///< Of ResourceSettings.
  std::optional<std::size_t> item;
  std::string message;
  std::vector<std::string> notes;
  std::string suggestion;
};

/// The request; what is wrong is appended to `problems`, and the request is then of no use.
GpuRequest gpu_request(const ResourceSettings& resources, std::vector<GpuProblem>& problems);
/// For settings that have been checked; throws InputError where they are wrong all the same (a
/// program's settings, a fuzzer's).
GpuRequest gpu_request(const ResourceSettings& resources);

/// Takes back what `merged` inherited from the pipeline and the step's own way of asking replaces:
/// a step's `gpu_count` over the pipeline's `devices`.
void merge_gpu_settings(ResourceSettings& merged, const ResourceSettings& step);

}  // namespace pipeline::settings
