/// @file
/// Samples of GPUs by nvidia-smi, for a step that runs where this process cannot load NVML: in a
/// pod, or in a container of another machine's engine. NVIDIA's runtime puts nvidia-smi into each
/// container with GPUs beside the driver's libraries, which a static program cannot load. Both need
/// glibc, so that an image with another C library has neither.
///
/// The agent in pods uses these functions too, so they allocate nothing and throw nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "gpu/gpu_sums.hpp"

namespace pipeline::gpu {

/// Prints a line for each GPU at once, and each second again. The driver's own measure of load is
/// the mean of at most the last second; a sample takes some milliseconds of a CPU.
inline constexpr std::array smi_command{
    "nvidia-smi", "--query-gpu=index,uuid,name,utilization.gpu,memory.used,memory.total",
    "--format=csv,noheader,nounits", "-lms", "1000"};

struct SmiSample {
  unsigned index = 0;
  std::string_view uuid, model;
  std::optional<double> share;                ///< 0 to 1; unset for a GPU that MIG divides.
  std::uint64_t memory_used = 0, memory = 0;  ///< Bytes.
};

/// Returns the sample in a line of `smi_command`; nothing for any other line, and for a GPU without
/// a memory size.
std::optional<SmiSample> read_smi_sample(std::string_view line);

/// Adds up what `smi_command` prints. The samples are taken at equal intervals, so each counts the
/// same, whenever it arrives.
class SmiSamples {
 public:
  static constexpr std::size_t max_gpus = 16, max_text = 80;

  struct Gpu {
    unsigned index = 0;
    char uuid[max_text] = "", model[max_text] = "";
    GpuSums sums;
  };

  /// Reads output of `smi_command`, which may be cut anywhere.
  void feed(std::string_view bytes);
  /// Returns the sums of the first `max_gpus` GPUs.
  std::span<const Gpu> gpus() const { return {gpus_.data(), count_}; }

 private:
  void take(const SmiSample& sample);

  std::array<char, 512> line_{};
  std::size_t length_ = 0;
  bool is_too_long_ = false;
  std::array<Gpu, max_gpus> gpus_{};
  std::size_t count_ = 0;
};

}  // namespace pipeline::gpu
