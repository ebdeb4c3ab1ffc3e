#include "kubernetes/agent.hpp"

// PIPELINE_AGENT names the built program (src/CMakeLists.txt).
asm(".section .rodata\n"
    "pipeline_agent_begin: .incbin \"" PIPELINE_AGENT
    "\"\n"
    "pipeline_agent_end: .byte 0\n"
    ".previous\n");

extern "C" {
extern const char pipeline_agent_begin[], pipeline_agent_end[];
}

namespace pipeline::kubernetes {

std::string_view agent_program() { return {pipeline_agent_begin, static_cast<std::size_t>(pipeline_agent_end - pipeline_agent_begin)}; }

}  // namespace pipeline::kubernetes
