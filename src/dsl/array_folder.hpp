/// @file
/// The folder of new arrays' memory, so that they become outputs without a copy.
#pragma once

#include <string>

namespace pipeline::detail {

/// Arrays created after this call are unnamed files in the folder. Where that is not possible
/// (tmpfs of old kernels), and before the call, they are private memory.
void make_arrays_in(const std::string& folder);

}  // namespace pipeline::detail
