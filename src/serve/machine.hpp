/// @file
/// The use of this machine: processors, memory, disk, GPUs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "serve/response.hpp"

namespace pipeline::serve {

/// Ticks of all processors since the machine was started, by the first line of /proc/stat.
struct Ticks {
  std::uint64_t all = 0, idle = 0;
};

/// Returns the part of the time between two readings in which the processors worked, from 0 to 1;
/// nothing if no time has passed. The kernel's count of the time spent waiting for disks, which
/// `idle` contains, may decrease.
std::optional<double> busy_part(const Ticks& before, const Ticks& after);

/// Sends `machine` every two seconds.
/// @param folder a folder of the file system to show
std::unique_ptr<Feed> machine_feed(std::filesystem::path folder);

}  // namespace pipeline::serve
