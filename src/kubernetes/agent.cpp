#include "kubernetes/agent.hpp"

#include "core/error.hpp"

// PIPELINE_AGENT and PIPELINE_STAGER name the built programs (src/CMakeLists.txt).
asm(".section .rodata\n"
    "pipeline_agent_begin: .incbin \"" PIPELINE_AGENT
    "\"\n"
    "pipeline_agent_end: .byte 0\n"
    "pipeline_stager_begin:\n"
#ifdef PIPELINE_STAGER
    ".incbin \"" PIPELINE_STAGER
    "\"\n"
#endif
    "pipeline_stager_end: .byte 0\n"
    ".previous\n");

extern "C" {
extern const char pipeline_agent_begin[], pipeline_agent_end[];
extern const char pipeline_stager_begin[], pipeline_stager_end[];
}

namespace pipeline::kubernetes {

std::string_view agent_program() {
  return {pipeline_agent_begin,
          static_cast<std::size_t>(pipeline_agent_end - pipeline_agent_begin)};
}

std::string_view stager_program() {
#ifdef PIPELINE_STAGER
  return {pipeline_stager_begin,
          static_cast<std::size_t>(pipeline_stager_end - pipeline_stager_begin)};
#else
  throw core::EnvironmentError(
      "this `pipe` was built without the program that carries files between a bucket and pods",
      {"build it where OpenSSL has static libraries, as on Debian and Ubuntu",
       "or let pods and this machine share a folder or a volume claim instead of a bucket"});
#endif
}

}  // namespace pipeline::kubernetes
