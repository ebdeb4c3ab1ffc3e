/// @file
/// Opens files below a folder and no others: symbolic links are not followed, and `..` does not
/// leave the folder.
#pragma once

#include <string>

#include "core/file.hpp"

namespace pipeline::file_tree {

/// Opens `path`, relative to the open folder `folder`; the empty path is the folder itself. Uses
/// openat2(2) where the kernel has it, otherwise opens component by component. On failure, returns
/// no descriptor and sets errno: ELOOP or ENOTDIR for a symbolic link, EXDEV for `..` out of the
/// folder, or for any `..` without openat2().
/// @param flags flags of open(2) without O_CREAT
core::Descriptor open_beneath(int folder, const std::string& path, int flags);

}  // namespace pipeline::file_tree
