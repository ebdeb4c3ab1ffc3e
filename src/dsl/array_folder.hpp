/// @file
/// Where the memory of new arrays is, so that they become outputs without a copy.
#pragma once

#include <string>

namespace pipeline::detail {

/// Arrays made from now on are unnamed files in this folder; where that cannot be (tmpfs of old
/// kernels), and before the call, plain memory.
void make_arrays_in(const std::string& folder);

}  // namespace pipeline::detail
