#include "kubernetes/agent.hpp"

// PIPELINE_AGENT and PIPELINE_CARRIER name the built programs (src/CMakeLists.txt).
asm(".section .rodata\n"
    "pipeline_agent_begin: .incbin \"" PIPELINE_AGENT
    "\"\n"
    "pipeline_agent_end: .byte 0\n"
    "pipeline_carrier_begin: .incbin \"" PIPELINE_CARRIER
    "\"\n"
    "pipeline_carrier_end: .byte 0\n"
    ".previous\n");

extern "C" {
extern const char pipeline_agent_begin[], pipeline_agent_end[];
extern const char pipeline_carrier_begin[], pipeline_carrier_end[];
}

namespace pipeline::kubernetes {

std::string_view agent_program() { return {pipeline_agent_begin, static_cast<std::size_t>(pipeline_agent_end - pipeline_agent_begin)}; }

std::string_view carrier_program() { return {pipeline_carrier_begin, static_cast<std::size_t>(pipeline_carrier_end - pipeline_carrier_begin)}; }

}  // namespace pipeline::kubernetes
