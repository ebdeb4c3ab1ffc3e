#include "agent/install.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pipeline::agent {

int install(const char* path) {
  char fresh[4096];
  snprintf(fresh, sizeof fresh, "%s.new", path);
  const int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
            to = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
  struct stat program {};
  bool good = from >= 0 && to >= 0 && fstat(from, &program) == 0;
  for (off_t done = 0; good && done < program.st_size;)
    good = sendfile(to, from, &done, static_cast<std::size_t>(program.st_size - done)) > 0;
  good = good && fchmod(to, 0555) == 0 && close(to) == 0 && rename(fresh, path) == 0;
  if (!good)
    fprintf(stderr, "pipe-agent: cannot install itself as %s: %s\n", path, strerror(errno));
  return good ? 0 : 1;
}

}  // namespace pipeline::agent
