/// @file
/// Opens what is below a folder, and nothing else: no symbolic link is followed, and `..` does not
/// lead out.
#pragma once

#include <string>

#include "core/file.hpp"

namespace pipeline::archive {

/// Opens `path`, relative to the open folder `folder`; the empty path is the folder itself. By
/// openat2(2) where the kernel has it, otherwise component by component. Returns no descriptor and
/// leaves errno where that fails: ELOOP or ENOTDIR for a symbolic link, EXDEV for `..`.
/// @param flags of open(2) without O_CREAT
core::Descriptor open_beneath(int folder, const std::string& path, int flags);

}  // namespace pipeline::archive
