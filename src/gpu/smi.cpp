#include "gpu/smi.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include <pipeline/literals.hpp>

#include "core/text.hpp"

namespace pipeline::gpu {
namespace {

std::vector<std::string_view> columns_of(std::string_view line) {
  auto columns = core::split(line, ',');
  for (auto& column : columns) column = core::trimmed(column);
  return columns;
}

/// Returns 0 for a text that is not a number, such as `[N/A]`.
template <class Number = std::uint64_t>
Number number_or_zero(std::string_view text) {
  Number value{};
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// Returns the text between `before` and `after`; empty if they are not found.
std::string_view between(std::string_view text, std::string_view before, std::string_view after) {
  const auto begin = text.find(before);
  if (begin == text.npos) return {};
  text.remove_prefix(begin + before.size());
  return core::trimmed(text.substr(0, text.find(after)));
}

/// Columns: index, uuid, name, bus, memory.total, memory.used, driver, compute_mode, mig.mode and,
/// from driver 470 on, compute_cap.
void read_device(const std::vector<std::string_view>& row, Inventory& inventory) {
  Device device;
  device.index = number_or_zero<unsigned>(row[0]);
  device.uuid = row[1];
  device.model = row[2];
  device.bus_id = row[3];
  device.memory = number_or_zero(row[4]) * 1_MiB;
  device.memory_used = number_or_zero(row[5]) * 1_MiB;
  inventory.driver = row[6];
  device.mode = row[7].starts_with("Exclusive") ? ComputeMode::exclusive
                : row[7] == "Prohibited"        ? ComputeMode::prohibited
                                                : ComputeMode::shared;
  device.mig = row[8] == "Enabled";
  if (row.size() > 9)
    device.capability =
        settings::parse_compute_capability(row[9]).value_or(settings::ComputeCapability{});
  inventory.devices.push_back(std::move(device));
}

/// Returns the index of the first device with this UUID. An index stays valid when further devices
/// are read; a pointer would not.
std::optional<std::size_t> find_device(const Inventory& inventory, std::string_view uuid) {
  const auto& devices = inventory.devices;
  const auto found = std::ranges::find(devices, uuid, &Device::uuid);
  if (found == devices.end()) return std::nullopt;
  return static_cast<std::size_t>(found - devices.begin());
}

/// Reads a line such as `MIG 1g.5gb     Device  0: (UUID: MIG-...)`.
void read_slice(std::string_view line, Device& device) {
  Slice slice;
  slice.uuid = between(line, "(UUID: ", ")");
  slice.index = number_or_zero<unsigned>(between(line, "Device ", ":"));
  slice.profile = between(line, "MIG ", " ");
  // The memory is behind the last dot: of `1c.3g.20gb`, a compute instance, it is 20.
  const std::string_view profile = slice.profile;
  slice.memory = number_or_zero(profile.substr(profile.rfind('.') + 1)) << 30;
  device.slices.push_back(std::move(slice));
  // The MIG mode was asked before the slices, and may have changed since: a GPU with slices is
  // divided.
  device.mig = true;
}

}  // namespace

std::string_view smi_script() {
  return R"sh(PATH=$PATH:/usr/local/nvidia/bin
ask() {
  nvidia-smi --query-gpu=index,uuid,name,pci.bus_id,memory.total,memory.used,driver_version,compute_mode,mig.mode.current$1 \
    --format=csv,noheader,nounits
}
ask ,compute_cap || ask || exit
nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory --format=csv,noheader,nounits
nvidia-smi -L
nvidia-smi)sh";
}

Inventory read_smi(std::string_view printed) {
  Inventory inventory;
  std::optional<std::size_t> listed;  // The device to which the next slices belong.
  for (const auto printed_line : core::split(printed, '\n')) {
    const auto line = core::trimmed(printed_line);
    const auto columns = columns_of(line);
    if (columns.size() >= 9 && columns[1].starts_with("GPU-")) {
      read_device(columns, inventory);
    } else if (columns.size() == 3 && columns[0].starts_with("GPU-")) {
      if (const auto at = find_device(inventory, columns[0])) {
        Process process;
        process.pid = number_or_zero<std::int64_t>(columns[1]);
        process.memory = number_or_zero(columns[2]) * 1_MiB;
        inventory.devices[*at].processes.push_back(process);
      }
    } else if (line.starts_with("GPU ")) {
      listed = find_device(inventory, between(line, "(UUID: ", ")"));
    } else if (line.starts_with("MIG ") && listed) {
      read_slice(line, inventory.devices[*listed]);
    } else if (const auto version = between(line, "CUDA Version: ", " "); !version.empty()) {
      inventory.cuda = version;
    }
  }
  return inventory;
}

}  // namespace pipeline::gpu
