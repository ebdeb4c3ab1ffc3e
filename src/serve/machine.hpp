/// @file
/// The use of this machine: processors, memory, disk, GPUs.
#pragma once

#include <filesystem>
#include <memory>

#include "serve/answer.hpp"

namespace pipeline::serve {

/// `machine` every two seconds.
/// @param folder whose file system is shown
std::unique_ptr<Feed> machine_feed(std::filesystem::path folder);

}  // namespace pipeline::serve
