/* For LD_PRELOAD of User-mode Linux: it keeps 4 KiB at most of a processor's registers, and the kernel below takes them whole or not at all, which with AMX are 11 KiB.
   What lies beyond is as it was, and AMX's own state is unused. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { xstate = 0x202, features_at = 512, amx = 3 << 17 };

static long call(long request, long pid, void* address, void* data) { return syscall(SYS_ptrace, request, pid, address, data); }

long ptrace(enum __ptrace_request request, ...) {
  va_list words;
  va_start(words, request);
  const long pid = va_arg(words, int);
  void* address = va_arg(words, void*);
  void* data = va_arg(words, void*);
  va_end(words);
  if ((request == PTRACE_GETREGSET || request == PTRACE_SETREGSET) && (intptr_t)address == xstate) {
    static char registers[65536];
    struct iovec whole = {registers, sizeof registers};
    struct iovec* part = data;
    const long result = call(PTRACE_GETREGSET, pid, address, &whole);
    if (result < 0) return result;
    if (part->iov_len > whole.iov_len) part->iov_len = whole.iov_len;
    if (request == PTRACE_GETREGSET) {
      memcpy(part->iov_base, registers, part->iov_len);
      return 0;
    }
    memcpy(registers, part->iov_base, part->iov_len);
    uint64_t features;
    memcpy(&features, registers + features_at, sizeof features);
    features &= ~(uint64_t)amx;
    memcpy(registers + features_at, &features, sizeof features);
    return call(PTRACE_SETREGSET, pid, address, &whole);
  }
  if (request == PTRACE_PEEKTEXT || request == PTRACE_PEEKDATA || request == PTRACE_PEEKUSER) {
    long value = 0; /* the C library returns it, the kernel stores it */
    const long result = call(request, pid, address, &value);
    if (result < 0) return result;
    errno = 0;
    return value;
  }
  return call(request, pid, address, data);
}
