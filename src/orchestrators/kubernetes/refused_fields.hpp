/// @file
/// Fields of a Job as the settings that they are made from. Pure.
#pragma once

#include <string>
#include <string_view>

namespace pipeline::orchestrators {

/// "`kubernetes.tolerations`" of `spec.template.spec.tolerations[0].effect`; empty for what no
/// setting makes.
std::string setting_of_field(std::string_view field);

}  // namespace pipeline::orchestrators
