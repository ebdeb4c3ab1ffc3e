/// @file
/// The folder of new arrays' memory, so that arrays become outputs without a copy.
#pragma once

#include <string>

namespace pipeline::detail {

/// Makes arrays that are created from now on unnamed files in the folder, or private memory where
/// that is not possible (tmpfs of old kernels). Before the first call, arrays are private memory.
void make_arrays_in(const std::string& folder);

}  // namespace pipeline::detail
