#include "orchestrators/containers/service_output.hpp"

#include <algorithm>

#include "core/text.hpp"

namespace pipeline::orchestrators::containers {

void add_last_lines(const std::string& service, std::string_view output, Failure& failure) {
  constexpr std::size_t max_lines = 10;
  auto lines = core::split(output, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  const auto first = lines.size() - std::min(lines.size(), max_lines);
  for (auto i = first; i < lines.size(); ++i)
    failure.details.push_back("[" + service + "] " + std::string(lines[i]));
}

std::string_view last_line_of(std::string_view output) {
  const auto text = core::trimmed(output);
  return core::trimmed(text.substr(text.rfind('\n') + 1));
}

}  // namespace pipeline::orchestrators::containers
