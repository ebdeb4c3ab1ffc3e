/// @file
/// Opens files that other users or programs have named or made. Anything but a regular file is
/// refused without waiting; open_regular_file() makes two exceptions.
#pragma once

#include <fcntl.h>

#include <filesystem>

#include "core/file.hpp"

namespace pipeline::core {

/// Opens a file for reading. Throws EnvironmentError on failure, and for a named pipe, a socket or
/// a device other than /dev/null, without waiting for a writer. Descriptors of this process
/// (`/dev/fd/3`) may be pipes. read_file() and sha256_file() open files by this function.
Descriptor open_regular_file(const std::filesystem::path& path);

/// Opens a file for reading that a step or another user may have made: a link in its place is not
/// followed, and a pipe is not waited for. On failure, returns an invalid descriptor and sets
/// errno: ELOOP for a link, ENXIO for a socket, EINVAL for anything else that is not a file.
/// @param folder the open folder of a relative path
Descriptor open_untrusted_file(const std::filesystem::path& path, int folder = AT_FDCWD);

}  // namespace pipeline::core
