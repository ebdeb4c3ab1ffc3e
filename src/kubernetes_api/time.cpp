#include "kubernetes_api/time.hpp"

#include <ctime>

namespace pipeline::kubernetes_api {

std::string format_time(std::chrono::system_clock::time_point time) {
  const auto seconds =
      std::chrono::system_clock::to_time_t(std::chrono::floor<std::chrono::seconds>(time));
  tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  const auto size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text, size};
}

}  // namespace pipeline::kubernetes_api
