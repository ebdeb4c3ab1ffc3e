/// @file
/// Names that no other process chooses.
#pragma once

#include <string>

namespace pipeline::core {

/// Returns 16 random hexadecimal digits.
std::string random_name();

}  // namespace pipeline::core
