/// @file
/// The agent (src/agent: the program that starts a step's command in its pod) as a file that tests
/// can start.
#pragma once

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "agent/programs.hpp"
#include "core/file.hpp"

namespace pipeline::test {

/// Writes the agent to `file`. If $PIPE_TEST_EMULATOR names an emulator of another processor, the
/// agent is written to FILE.program, and `file` is a script that starts it in the emulator.
inline void write_agent(const std::filesystem::path& file) {
  auto program = file;
  if (const char* emulator = std::getenv("PIPE_TEST_EMULATOR")) {
    program += ".program";
    core::write_file_atomically(
        file, std::string("#!/bin/sh\nexec ") + emulator + " '" + program.string() + "' \"$@\"\n");
    ::chmod(file.c_str(), 0755);
  }
  core::write_file_atomically(program, agent::agent_program());
  ::chmod(program.c_str(), 0755);
}

}  // namespace pipeline::test
