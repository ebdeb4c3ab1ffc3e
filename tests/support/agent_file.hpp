/// @file
/// The agent as a file that tests can start.
#pragma once

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "agent/programs.hpp"
#include "core/file.hpp"

namespace pipeline::test {

/// Writes the agent. Where the tests run in an emulator of another processor, which
/// $PIPE_TEST_EMULATOR names, the file is a script that starts the agent in it.
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
