#include "agent/programs.hpp"

#include <cstdint>
#include <string>

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sys/mman.h>
#include <unistd.h>

#include "core/error.hpp"

// The macros name the built programs (src/CMakeLists.txt); a program that was not built has no
// bytes. Labels are global, because arm64's assembler writes a local label as a section and an
// offset, and its linker loses the offset in position independent code.
#define PIPELINE_LABEL(name) ".global " name "\n.hidden " name "\n" name ":\n"
#define PIPELINE_EMBED(symbol, file) \
  PIPELINE_LABEL(symbol "_begin") file "\n" PIPELINE_LABEL(symbol "_end") ".byte 0\n"
#ifdef PIPELINE_STAGER
#define PIPELINE_STAGER_BYTES ".incbin \"" PIPELINE_STAGER "\""
#else
#define PIPELINE_STAGER_BYTES ""
#endif
#ifdef PIPELINE_OTHER_AGENT
#define PIPELINE_OTHER_AGENT_BYTES ".incbin \"" PIPELINE_OTHER_AGENT "\""
#else
#define PIPELINE_OTHER_AGENT_BYTES ""
#endif
#ifdef PIPELINE_OTHER_STAGER
#define PIPELINE_OTHER_STAGER_BYTES ".incbin \"" PIPELINE_OTHER_STAGER "\""
#else
#define PIPELINE_OTHER_STAGER_BYTES ""
#endif
asm(".section .rodata\n"                                                  //
    PIPELINE_EMBED("pipeline_agent", ".incbin \"" PIPELINE_AGENT "\"")    //
    PIPELINE_EMBED("pipeline_stager", PIPELINE_STAGER_BYTES)              //
    PIPELINE_EMBED("pipeline_other_agent", PIPELINE_OTHER_AGENT_BYTES)    //
    PIPELINE_EMBED("pipeline_other_stager", PIPELINE_OTHER_STAGER_BYTES)  //
    ".previous\n");

extern "C" {
extern const char pipeline_agent_begin[], pipeline_agent_end[];
extern const char pipeline_stager_begin[], pipeline_stager_end[];
extern const char pipeline_other_agent_begin[], pipeline_other_agent_end[];
extern const char pipeline_other_stager_begin[], pipeline_other_stager_end[];
}

namespace pipeline::agent {
namespace {

constexpr std::string_view other_architecture = own_architecture == "amd64" ? "arm64" : "amd64";

std::string_view bytes(const char* begin, const char* end) {
  return {begin, static_cast<std::size_t>(end - begin)};
}

[[noreturn]] void throw_not_included(std::string_view architecture) {
  throw core::EnvironmentError(
      "this `pipe` cannot start steps on nodes of the architecture " + std::string(architecture) +
          ": it has the program for " + std::string(own_architecture) + " nodes only",
      {"a release of `pipe` has those for amd64 and arm64; docs/install.md says how to build one",
       "or set `docker.platform: linux/" + std::string(own_architecture) + "`"});
}

}  // namespace

std::string_view agent_program(std::string_view architecture) {
  if (architecture == own_architecture) return bytes(pipeline_agent_begin, pipeline_agent_end);
  const auto other = bytes(pipeline_other_agent_begin, pipeline_other_agent_end);
  if (architecture != other_architecture || other.empty()) throw_not_included(architecture);
  return other;
}

std::string_view stager_program(std::string_view architecture) {
  const bool is_own = architecture == own_architecture;
  if (!is_own) agent_program(architecture);  // Throws for an architecture that is not included.
  const auto found = is_own ? bytes(pipeline_stager_begin, pipeline_stager_end)
                            : bytes(pipeline_other_stager_begin, pipeline_other_stager_end);
  if (found.empty())
    throw core::EnvironmentError(
        "this `pipe` was built without the stager, which transfers files between the remote store "
        "and pods",
        {"build it where OpenSSL has static libraries, as on Debian and Ubuntu",
         "or let pods and this machine share a folder or a volume claim instead of the remote "
         "store"});
  return found;
}

void release_program_pages() {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin =
                 (reinterpret_cast<std::uintptr_t>(pipeline_agent_begin) + page - 1) / page * page,
             end = reinterpret_cast<std::uintptr_t>(pipeline_other_stager_end) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
#ifdef __GLIBC__
  ::malloc_trim(0);  // Copies of several MiB leave holes in the heap.
#endif
}

}  // namespace pipeline::agent
