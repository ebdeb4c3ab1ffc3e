#include "gpu/instance_types.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>

#include <pipeline/literals.hpp>

#include "core/diagnostic.hpp"
#include "core/quantity.hpp"
#include "core/text.hpp"
#include "gpu/model.hpp"

namespace pipeline::gpu {
namespace {

/// The columns are the members of InstanceType. Sources: p2, p3 and g3 from Amazon ECS's guide
/// ("Working with GPUs on Amazon ECS"), the others from EC2's DescribeInstanceTypes as listed by
/// Karpenter's reference (github.com/aws/karpenter-provider-aws,
/// website/.../reference/instance-types.md, August 2026). Compute capabilities:
/// developer.nvidia.com/cuda-gpus. Not included: g6f and gr6f, which have a fraction of a GPU.
constexpr std::array instance_table{
    InstanceType{"g3.4xlarge", 1, "M60", 8192, {5, 2}, 16, 124928, "x86_64"},
    InstanceType{"g3.8xlarge", 2, "M60", 8192, {5, 2}, 32, 249856, "x86_64"},
    InstanceType{"g3.16xlarge", 4, "M60", 8192, {5, 2}, 64, 499712, "x86_64"},
    InstanceType{"g3s.xlarge", 1, "M60", 8192, {5, 2}, 4, 31232, "x86_64"},
    InstanceType{"g4ad.xlarge", 1, "Radeon Pro V520", 8192, {0, 0}, 4, 16384, "x86_64"},
    InstanceType{"g4ad.2xlarge", 1, "Radeon Pro V520", 8192, {0, 0}, 8, 32768, "x86_64"},
    InstanceType{"g4ad.4xlarge", 1, "Radeon Pro V520", 8192, {0, 0}, 16, 65536, "x86_64"},
    InstanceType{"g4ad.8xlarge", 2, "Radeon Pro V520", 8192, {0, 0}, 32, 131072, "x86_64"},
    InstanceType{"g4ad.16xlarge", 4, "Radeon Pro V520", 8192, {0, 0}, 64, 262144, "x86_64"},
    InstanceType{"g4dn.xlarge", 1, "T4", 16384, {7, 5}, 4, 16384, "x86_64"},
    InstanceType{"g4dn.2xlarge", 1, "T4", 16384, {7, 5}, 8, 32768, "x86_64"},
    InstanceType{"g4dn.4xlarge", 1, "T4", 16384, {7, 5}, 16, 65536, "x86_64"},
    InstanceType{"g4dn.8xlarge", 1, "T4", 16384, {7, 5}, 32, 131072, "x86_64"},
    InstanceType{"g4dn.12xlarge", 4, "T4", 16384, {7, 5}, 48, 196608, "x86_64"},
    InstanceType{"g4dn.16xlarge", 1, "T4", 16384, {7, 5}, 64, 262144, "x86_64"},
    InstanceType{"g4dn.metal", 8, "T4", 16384, {7, 5}, 96, 393216, "x86_64"},
    InstanceType{"g5.xlarge", 1, "A10G", 22888, {8, 6}, 4, 16384, "x86_64"},
    InstanceType{"g5.2xlarge", 1, "A10G", 22888, {8, 6}, 8, 32768, "x86_64"},
    InstanceType{"g5.4xlarge", 1, "A10G", 22888, {8, 6}, 16, 65536, "x86_64"},
    InstanceType{"g5.8xlarge", 1, "A10G", 22888, {8, 6}, 32, 131072, "x86_64"},
    InstanceType{"g5.12xlarge", 4, "A10G", 22888, {8, 6}, 48, 196608, "x86_64"},
    InstanceType{"g5.16xlarge", 1, "A10G", 22888, {8, 6}, 64, 262144, "x86_64"},
    InstanceType{"g5.24xlarge", 4, "A10G", 22888, {8, 6}, 96, 393216, "x86_64"},
    InstanceType{"g5.48xlarge", 8, "A10G", 22888, {8, 6}, 192, 786432, "x86_64"},
    InstanceType{"g5g.xlarge", 1, "T4G", 16384, {7, 5}, 4, 8192, "arm64"},
    InstanceType{"g5g.2xlarge", 1, "T4G", 16384, {7, 5}, 8, 16384, "arm64"},
    InstanceType{"g5g.4xlarge", 1, "T4G", 16384, {7, 5}, 16, 32768, "arm64"},
    InstanceType{"g5g.8xlarge", 1, "T4G", 16384, {7, 5}, 32, 65536, "arm64"},
    InstanceType{"g5g.16xlarge", 2, "T4G", 16384, {7, 5}, 64, 131072, "arm64"},
    InstanceType{"g5g.metal", 2, "T4G", 16384, {7, 5}, 64, 131072, "arm64"},
    InstanceType{"g6.xlarge", 1, "L4", 22888, {8, 9}, 4, 16384, "x86_64"},
    InstanceType{"g6.2xlarge", 1, "L4", 22888, {8, 9}, 8, 32768, "x86_64"},
    InstanceType{"g6.4xlarge", 1, "L4", 22888, {8, 9}, 16, 65536, "x86_64"},
    InstanceType{"g6.8xlarge", 1, "L4", 22888, {8, 9}, 32, 131072, "x86_64"},
    InstanceType{"g6.12xlarge", 4, "L4", 22888, {8, 9}, 48, 196608, "x86_64"},
    InstanceType{"g6.16xlarge", 1, "L4", 22888, {8, 9}, 64, 262144, "x86_64"},
    InstanceType{"g6.24xlarge", 4, "L4", 22888, {8, 9}, 96, 393216, "x86_64"},
    InstanceType{"g6.48xlarge", 8, "L4", 22888, {8, 9}, 192, 786432, "x86_64"},
    InstanceType{"g6e.xlarge", 1, "L40S", 45776, {8, 9}, 4, 32768, "x86_64"},
    InstanceType{"g6e.2xlarge", 1, "L40S", 45776, {8, 9}, 8, 65536, "x86_64"},
    InstanceType{"g6e.4xlarge", 1, "L40S", 45776, {8, 9}, 16, 131072, "x86_64"},
    InstanceType{"g6e.8xlarge", 1, "L40S", 45776, {8, 9}, 32, 262144, "x86_64"},
    InstanceType{"g6e.12xlarge", 4, "L40S", 45776, {8, 9}, 48, 393216, "x86_64"},
    InstanceType{"g6e.16xlarge", 1, "L40S", 45776, {8, 9}, 64, 524288, "x86_64"},
    InstanceType{"g6e.24xlarge", 4, "L40S", 45776, {8, 9}, 96, 786432, "x86_64"},
    InstanceType{"g6e.48xlarge", 8, "L40S", 45776, {8, 9}, 192, 1572864, "x86_64"},
    InstanceType{"g7.2xlarge", 1, "RTX PRO 4500", 32768, {12, 0}, 8, 32768, "x86_64"},
    InstanceType{"g7.4xlarge", 1, "RTX PRO 4500", 32768, {12, 0}, 16, 65536, "x86_64"},
    InstanceType{"g7.8xlarge", 1, "RTX PRO 4500", 32768, {12, 0}, 32, 131072, "x86_64"},
    InstanceType{"g7.12xlarge", 2, "RTX PRO 4500", 32768, {12, 0}, 48, 196608, "x86_64"},
    InstanceType{"g7.24xlarge", 4, "RTX PRO 4500", 32768, {12, 0}, 96, 393216, "x86_64"},
    InstanceType{"g7.48xlarge", 8, "RTX PRO 4500", 32768, {12, 0}, 192, 786432, "x86_64"},
    InstanceType{"g7e.2xlarge", 1, "RTX PRO 6000", 98304, {12, 0}, 8, 65536, "x86_64"},
    InstanceType{"g7e.4xlarge", 1, "RTX PRO 6000", 98304, {12, 0}, 16, 131072, "x86_64"},
    InstanceType{"g7e.8xlarge", 1, "RTX PRO 6000", 98304, {12, 0}, 32, 262144, "x86_64"},
    InstanceType{"g7e.12xlarge", 2, "RTX PRO 6000", 98304, {12, 0}, 48, 524288, "x86_64"},
    InstanceType{"g7e.24xlarge", 4, "RTX PRO 6000", 98304, {12, 0}, 96, 1048576, "x86_64"},
    InstanceType{"g7e.48xlarge", 8, "RTX PRO 6000", 98304, {12, 0}, 192, 2097152, "x86_64"},
    InstanceType{"gr6.4xlarge", 1, "L4", 22888, {8, 9}, 16, 131072, "x86_64"},
    InstanceType{"gr6.8xlarge", 1, "L4", 22888, {8, 9}, 32, 262144, "x86_64"},
    InstanceType{"p2.xlarge", 1, "K80", 12288, {3, 7}, 4, 62464, "x86_64"},
    InstanceType{"p2.8xlarge", 8, "K80", 12288, {3, 7}, 32, 499712, "x86_64"},
    InstanceType{"p2.16xlarge", 16, "K80", 12288, {3, 7}, 64, 749568, "x86_64"},
    InstanceType{"p3.2xlarge", 1, "V100", 16384, {7, 0}, 8, 62464, "x86_64"},
    InstanceType{"p3.8xlarge", 4, "V100", 16384, {7, 0}, 32, 249856, "x86_64"},
    InstanceType{"p3.16xlarge", 8, "V100", 16384, {7, 0}, 64, 499712, "x86_64"},
    InstanceType{"p3dn.24xlarge", 8, "V100", 32768, {7, 0}, 96, 786432, "x86_64"},
    InstanceType{"p4d.24xlarge", 8, "A100", 40960, {8, 0}, 96, 1179648, "x86_64"},
    InstanceType{"p4de.24xlarge", 8, "A100", 81920, {8, 0}, 96, 1179648, "x86_64"},
    InstanceType{"p5.4xlarge", 1, "H100", 81920, {9, 0}, 16, 262144, "x86_64"},
    InstanceType{"p5.48xlarge", 8, "H100", 81920, {9, 0}, 192, 2097152, "x86_64"},
    InstanceType{"p5e.48xlarge", 8, "H200", 144384, {9, 0}, 192, 2097152, "x86_64"},
    InstanceType{"p5en.48xlarge", 8, "H200", 144384, {9, 0}, 192, 2097152, "x86_64"},
    InstanceType{"p6-b200.48xlarge", 8, "B200", 183359, {10, 0}, 192, 2097152, "x86_64"},
    InstanceType{"p6-b300.48xlarge", 8, "B300", 275040, {10, 3}, 192, 4194304, "x86_64"},
};

std::string size_of(unsigned mebibytes) { return core::format_bytes(mebibytes * 1_MiB); }
/// Rounds down as the table does: `24GB` is 22888.2 MiB.
std::uint64_t in_mebibytes(Bytes bytes) { return bytes / 1_MiB; }

/// Returns everything that a user may write as the GPU's name: maker, model, and the memory as a
/// number of 2^30 and of 10^9 bytes, since makers call both GB.
std::string full_name(const InstanceType& type) {
  return std::string(type.is_nvidia() ? "NVIDIA " : "AMD ") + type.gpu + " " +
         std::to_string(type.gpu_memory / 1024) + "GB " +
         std::to_string((type.gpu_memory * 1_MiB + 500'000'000) / 1'000'000'000) + "GB";
}

/// Formats `8` or `4.5`.
std::string format_number(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace

std::span<const InstanceType> instance_types() { return instance_table; }

const InstanceType* find_instance_type(std::string_view name) {
  const auto found = std::find_if(instance_table.begin(), instance_table.end(),
                                  [&](const InstanceType& each) { return name == each.name; });
  return found == instance_table.end() ? nullptr : &*found;
}

bool is_gpu_family(std::string_view name) {
  const auto family = [](std::string_view type) { return type.substr(0, type.find('.')); };
  return std::any_of(instance_table.begin(), instance_table.end(),
                     [&](const InstanceType& each) { return family(each.name) == family(name); });
}

std::string similar_instance_type(std::string_view name) {
  std::vector<std::string> names;
  // Only types with the same first letter: `g5.xlarge` is not meant by `m5.large`, which is spelled
  // similarly but has no GPU.
  for (const InstanceType& each : instance_table)
    if (name.substr(0, 1) == std::string_view(each.name).substr(0, 1))
      names.emplace_back(each.name);
  return core::did_you_mean(name, names);
}

std::vector<std::string> lacks(const InstanceType& type, const InstanceNeeds& needs) {
  std::vector<std::string> reasons;
  const auto lack = [&](bool is_lacking, std::string reason) {
    if (is_lacking) reasons.push_back(std::move(reason));
  };
  lack(type.gpus < needs.gpus,
       "it has " + core::counted(type.gpus, "GPU") + ", not " + std::to_string(needs.gpus));
  lack(needs.gpus > 0 && !type.is_nvidia(),
       std::string("its GPUs are AMD's (") + type.gpu + "), and NVIDIA's are needed");
  if (needs.gpus > 0) {
    lack(!needs.gpu_class.empty() && !model_matches(needs.gpu_class, full_name(type)),
         std::string("its GPUs are ") + type.gpu + ", not " + needs.gpu_class);
    lack(type.gpu_memory < in_mebibytes(needs.gpu_memory),
         "its GPUs have " + size_of(type.gpu_memory) + " each, not " +
             core::format_bytes(needs.gpu_memory));
    lack(type.is_nvidia() && type.capability < needs.capability,
         "its GPUs have compute capability " + type.capability.text() + ", not " +
             needs.capability.text());
  }
  lack(type.memory < in_mebibytes(needs.memory),
       "it has " + size_of(type.memory) + " of memory, not " + core::format_bytes(needs.memory));
  lack(type.vcpus < needs.cpus,
       "it has " + core::counted(type.vcpus, "vCPU") + ", not " + format_number(needs.cpus));
  lack(!needs.architecture.empty() && needs.architecture != type.architecture,
       std::string("its processor is ") + type.architecture);
  return reasons;
}

std::vector<InstanceType> fitting_instance_types(const InstanceNeeds& needs) {
  std::vector<InstanceType> fitting;
  for (const InstanceType& each : instance_table)
    if (lacks(each, needs).empty()) fitting.push_back(each);
  const auto size = [](const InstanceType& each) {
    return std::tuple(each.gpus, each.vcpus, each.memory, each.gpus * each.gpu_memory,
                      std::string_view(each.name));
  };
  std::sort(fitting.begin(), fitting.end(),
            [&](const InstanceType& a, const InstanceType& b) { return size(a) < size(b); });
  return fitting;
}

}  // namespace pipeline::gpu
