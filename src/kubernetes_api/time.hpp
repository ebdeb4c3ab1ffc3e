/// @file
/// Times in Kubernetes' format (RFC 3339).
#pragma once

#include <chrono>
#include <string>

#include "core/timestamp.hpp"

namespace pipeline::kubernetes_api {

using core::parse_time;
/// Formats `2026-11-21T08:15:00Z`, without fractions of a second.
std::string format_time(std::chrono::system_clock::time_point time);

}  // namespace pipeline::kubernetes_api
