/// @file
/// Maps fields of a Job to the settings that they are derived from. Pure.
#pragma once

#include <string>
#include <string_view>

namespace pipeline::orchestrators::kubernetes {

/// Returns "`kubernetes.tolerations`" for `spec.template.spec.tolerations[0].effect`; empty for a
/// field that no setting determines.
std::string setting_of_field(std::string_view field);

}  // namespace pipeline::orchestrators::kubernetes
