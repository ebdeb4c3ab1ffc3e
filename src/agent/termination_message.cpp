#include "agent/termination_message.hpp"

#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <unistd.h>

namespace pipeline::agent {
namespace {

void write_message(const char* text, int size) {
  const int file = open("/dev/termination-log", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file >= 0 && size > 0) (void)!write(file, text, static_cast<std::size_t>(size));
  if (file >= 0) close(file);
}

}  // namespace

int write_not_executed(int error) {
  char text[64];
  write_message(text, snprintf(text, sizeof text, "{\"not_executed\": %d}", error));
  return error == ENOENT ? 127 : 126;
}

void write_stager_killed(int signal) {
  // The stager's own reports have the same members (stager/failure_report.hpp); `passes` says that
  // another attempt may succeed.
  char text[128];
  write_message(
      text, snprintf(text, sizeof text,
                     "{\"not_collected\": \"signal %d has ended the program that stores them\", "
                     "\"passes\": true}",
                     signal));
}

}  // namespace pipeline::agent
