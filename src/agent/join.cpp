#include "agent/join.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

namespace pipeline::agent {
namespace {

constexpr std::size_t max_variables = 4 << 20;  ///< Bytes.

/// Reads a file in /proc; returns an empty text if it cannot be read.
std::string read_proc_file(const std::string& path) {
  std::string bytes;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  char some[16384];
  for (ssize_t count;
       file >= 0 && bytes.size() < max_variables && (count = read(file, some, sizeof some)) > 0;)
    bytes.append(some, static_cast<std::size_t>(count));
  if (file >= 0) close(file);
  return bytes;
}

int parent_of(int pid) {
  const auto text = read_proc_file("/proc/" + std::to_string(pid) + "/stat");
  const auto name_end = text.rfind(") ");  // `PID (NAME) STATE PARENT ...`
  return name_end == std::string::npos || name_end + 4 > text.size()
             ? 0
             : atoi(text.c_str() + name_end + 4);
}

/// Returns the topmost process with all of the variables; 0 if there is none. Its descendants
/// inherit the variables. The agent's rank may be torchrun, whose children have ranks of their own.
int topmost_with(const std::vector<std::string>& wanted) {
  std::set<int> found;
  DIR* const processes = opendir("/proc");
  while (const dirent* entry = processes ? readdir(processes) : nullptr) {
    const int pid = atoi(entry->d_name);
    if (pid <= 0) continue;
    const auto variables =
        '\0' + read_proc_file("/proc/" + std::string(entry->d_name) + "/environ");
    bool has_all = true;
    for (const auto& each : wanted)
      has_all = has_all && variables.find('\0' + each + '\0') != std::string::npos;
    if (has_all) found.insert(pid);
  }
  if (processes) closedir(processes);
  const auto is_below = [&](int pid) {
    for (int above = parent_of(pid); above > 1; above = parent_of(above))
      if (found.contains(above)) return true;
    return false;
  };
  for (const int pid : found)
    if (pid != getpid() && !is_below(pid)) return pid;
  return 0;
}

}  // namespace

int run_join(char** arguments) {
  std::vector<std::string> wanted;
  char** command = arguments;
  for (; *command && strchr(*command, '='); ++command) wanted.emplace_back(*command);
  const auto subject = wanted.empty() ? "rank " + std::string(*command) : std::string("the step");
  if (wanted.empty()) wanted.push_back("RANK=" + std::string(*command));
  // `*command` is the rank or `--`, and the command follows it.
  const int process = *command && *++command ? topmost_with(wanted) : 0;
  if (process == 0) {
    fprintf(stderr, "pipe-init: %s does not run any more\n", subject.c_str());
    return 125;
  }
  const auto folder = "/proc/" + std::to_string(process);
  auto text = read_proc_file(folder + "/environ");
  std::vector<char*> variables;
  for (std::size_t at = 0; at < text.size(); at += strlen(text.c_str() + at) + 1)
    variables.push_back(text.data() + at);
  variables.push_back(nullptr);
  // TERM describes the user's terminal, and comes from this process, not from the running one.
  const char* const own_term = getenv("TERM");
  const std::string terminal = own_term ? own_term : "";
  if (chdir((folder + "/cwd").c_str()) != 0)
    fprintf(stderr, "pipe-init: cannot enter the folder of %s: %s\n", subject.c_str(),
            strerror(errno));
  environ = variables.data();
  if (!terminal.empty()) setenv("TERM", terminal.c_str(), 1);
  execvp(command[0], command);
  const int error = errno;
  fprintf(stderr, "pipe-init: %s: %s\n", command[0], strerror(error));
  return error == ENOENT ? 127 : 126;
}

}  // namespace pipeline::agent
