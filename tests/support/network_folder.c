// For LD_PRELOAD: every folder is on NFS, as far as statfs(2) says.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/magic.h>
#include <sys/vfs.h>

int statfs(const char* path, struct statfs* status) {
  int (*real)(const char*, struct statfs*) = (int (*)(const char*, struct statfs*))dlsym(RTLD_NEXT, "statfs");
  const int result = real(path, status);
  status->f_type = NFS_SUPER_MAGIC;
  return result;
}
