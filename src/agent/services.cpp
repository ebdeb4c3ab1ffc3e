#include "agent/services.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/ready.hpp"

namespace pipeline::agent {
namespace {

constexpr int look_pause = 100;  // Milliseconds.

bool make_file(const char* path) {
  const int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (file >= 0) close(file);
  return file >= 0;
}

/// Runs a program and returns its exit code; 127 if it cannot be executed, 1 if a signal ended it.
int run_check(char** command) {
  const pid_t child = fork();
  if (child == 0) {
    execvp(command[0], command);
    printf("%s: %s\n", command[0], strerror(errno));
    fflush(stdout);
    _exit(127);
  }
  int status = 0;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/// Returns the number of ready services: of the folder's files, without hidden ones such as
/// `ended_file`.
int count_ready_services(const char* folder) {
  DIR* entries = opendir(folder);
  if (!entries) return 0;
  int count = 0;
  while (const dirent* entry = readdir(entries)) count += entry->d_name[0] != '.';
  closedir(entries);
  return count;
}

/// Reads all pending signals. Returns true if SIGTERM is among them.
bool has_sigterm(int signals) {
  signalfd_siginfo info;
  while (read(signals, &info, sizeof info) == sizeof info)
    if (info.ssi_signo == SIGTERM) return true;
  return false;
}

}  // namespace

int probe_service(const char* file, char** check) {
  const bool is_port = strcmp(check[0], "port") == 0;
  const int code = is_port ? look_if_ready(check[1], check[2]) : run_check(check + 1);
  if (code == 0 && !make_file(file)) printf("cannot make %s: %s\n", file, strerror(errno));
  return code;
}

int look_if_needed(const char* folder) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, ended_file);
  return access(path, F_OK) == 0 ? 1 : 0;
}

bool wait_for_services(const char* folder, int count, int signals) {
  while (count_ready_services(folder) < count) {
    pollfd news{signals, POLLIN, 0};
    poll(&news, 1, look_pause);
    if (has_sigterm(signals)) return false;
  }
  return true;
}

void end_services(const char* folder) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, ended_file);
  make_file(path);
}

}  // namespace pipeline::agent
