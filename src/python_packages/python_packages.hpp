/// @file
/// Names of well-known Python packages, for advice.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pipeline::python_packages {

/// Returns the package of the Python index that has this module; usually both have the same name.
std::string package_of(std::string_view module);

/// Returns the well-known package that was probably meant by a name that no index has: the name of
/// its module (`sklearn`), or its name with a mistake (`nunpy`).
std::optional<std::string> similar_package(std::string_view name);

}  // namespace pipeline::python_packages
