#include "net/silence.hpp"

#include "core/user_environment.hpp"

namespace pipeline::net {

std::chrono::seconds max_silence() {
  using std::chrono::seconds;
  const auto time =
      core::duration_of_variable("PIPE_SERVER_TIMEOUT", seconds(1), "duration of a second or more");
  return time ? seconds(time->count() / 1000) : seconds(60);
}

}  // namespace pipeline::net
