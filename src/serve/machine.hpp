/// @file
/// The use of this machine: processors, memory, disk, GPUs.
#pragma once

#include <filesystem>
#include <memory>

#include "serve/answer.hpp"

namespace pipeline::serve {

/// Sends `machine` every two seconds.
/// @param folder a folder of the file system to show
std::unique_ptr<Feed> machine_feed(std::filesystem::path folder);

}  // namespace pipeline::serve
