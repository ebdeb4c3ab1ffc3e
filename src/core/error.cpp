#include "core/error.hpp"

#include <cerrno>
#include <system_error>

namespace pipeline::core {

EnvironmentError system_error(const std::string& what, int error_number) {
  std::vector<std::string> advice;
  switch (error_number) {
    case ENOSPC:
      advice = {
          "free some space on that disk: `pipe clean --runs --keep 5` removes old runs, "
          "`pipe clean --images` removes images"};
      break;
    case EDQUOT:
      advice = {
          "your disk quota is used up: remove files of yours (`pipe clean --runs --keep 5` "
          "removes old runs), or ask for a larger quota"};
      break;
    case EACCES:
    case EPERM:
      advice = {
          "check the owner and the permissions of that path; if it is in the state folder, "
          "--state DIR or PIPE_HOME chooses another one"};
      break;
    case EROFS:
      advice = {
          "that file system is mounted read-only; if the state folder is on it, --state DIR or "
          "PIPE_HOME chooses another one"};
      break;
    case EMFILE:
    case ENFILE:
      advice = {
          "raise the limit of open files (`ulimit -n`), or run fewer steps at a time (--jobs)"};
      break;
    case EAGAIN:
    case ENOMEM:
      advice = {
          "this user, control group or machine has no room for another process, thread or piece of "
          "memory: run fewer steps at a time (--jobs), or raise the limit (`ulimit -a`, pids.max)"};
      break;
    default: break;
  }
  return EnvironmentError(what + ": " + std::generic_category().message(error_number),
                          std::move(advice));
}

}  // namespace pipeline::core
