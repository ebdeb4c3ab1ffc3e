/// @file
/// The output of services in the failures of their steps.
#pragma once

#include <string>
#include <string_view>

#include <pipeline/events.hpp>

namespace pipeline::orchestrators::containers {

/// Adds the last lines of a service's output to the failure's details, each after `[SERVICE] `.
/// @param output the end of the service's output
void add_last_lines(const std::string& service, std::string_view output, Failure& failure);

/// Returns the last line that has text, without blanks around it: programs say there why they
/// failed, also below a traceback. Returns an empty text if there is none.
std::string_view last_line_of(std::string_view output);

}  // namespace pipeline::orchestrators::containers
