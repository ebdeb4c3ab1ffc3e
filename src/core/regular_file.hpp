/// @file
/// Opens files that are named by others: what is no file is refused at once.
#pragma once

#include <filesystem>

#include "core/file.hpp"

namespace pipeline::core {

/// Opens a file for reading. Throws EnvironmentError, at once also for a named pipe, a socket or a
/// device other than /dev/null; but descriptors that the caller has passed (`/dev/fd/3`) may be
/// pipes. read_file() and sha256_file() open files so.
Descriptor open_regular_file(const std::filesystem::path& path);

}  // namespace pipeline::core
