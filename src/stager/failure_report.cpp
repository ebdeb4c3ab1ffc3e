#include "stager/failure_report.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>

namespace pipeline::stager {

std::string failure_report(const std::string& what, std::string message, bool is_transient,
                           const std::string& damaged) {
  using nlohmann::json;
  constexpr std::size_t max_size = 4096, max_end = 300;  // Bytes.
  // The reason is at the end of a message, and a path before it can be longer than the report.
  const auto end = message.substr(message.size() - std::min(message.size(), max_end));
  message.resize(message.size() - end.size());
  bool is_cut = message.size() > max_size;
  message.resize(std::min(message.size(), max_size));
  while (true) {
    json report{{what, message + (is_cut ? "..." : "") + end}, {"passes", is_transient}};
    if (!damaged.empty()) report["damaged"] = damaged;
    // Other letters than ASCII and control characters are written as six bytes or more.
    auto text = report.dump(-1, ' ', true, json::error_handler_t::replace);
    if (text.size() <= max_size || message.empty()) return text;
    is_cut = true;
    const auto excess = text.size() - max_size;
    message.resize(message.size() - std::min(message.size(), std::max<std::size_t>(excess / 6, 1)));
  }
}

}  // namespace pipeline::stager
