#include "kubernetes/agent.hpp"

// PIPELINE_AGENT and PIPELINE_STAGER name the built programs (src/CMakeLists.txt).
asm(".section .rodata\n"
    "pipeline_agent_begin: .incbin \"" PIPELINE_AGENT
    "\"\n"
    "pipeline_agent_end: .byte 0\n"
    "pipeline_stager_begin: .incbin \"" PIPELINE_STAGER
    "\"\n"
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
  return {pipeline_stager_begin,
          static_cast<std::size_t>(pipeline_stager_end - pipeline_stager_begin)};
}

}  // namespace pipeline::kubernetes
