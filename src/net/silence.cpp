#include "net/silence.hpp"

#include <cstdlib>
#include <string>

#include "core/error.hpp"
#include "core/quantity.hpp"

namespace pipeline::net {

std::chrono::seconds longest_silence() {
  const char* text = std::getenv("PIPE_SERVER_TIMEOUT");
  if (!text || !*text) return std::chrono::seconds(60);
  const auto time = core::parse_duration(text);
  const std::chrono::seconds seconds(time ? time->count() / 1000 : 0);
  if (seconds.count() <= 0)
    throw core::EnvironmentError(std::string("PIPE_SERVER_TIMEOUT is '") + text +
                                     "', which is no duration of a second or more",
                                 {"write it as `30s` or `5m`"});
  return seconds;
}

}  // namespace pipeline::net
