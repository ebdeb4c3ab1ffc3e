/// @file
/// Explains the signals that end a program that has crashed.
#pragma once

#include <signal.h>

#include <string>

namespace pipeline::orchestrators {

/// Returns the likely reason of a crash; empty for a signal that another process sends.
inline std::string crash_reason(int signal) {
  switch (signal) {
    case SIGSEGV:
    case SIGBUS: return "a program or native library in it used memory that is not its own";
    case SIGILL: return "a program or native library in it is made for another CPU";
    case SIGABRT: return "a program or native library in it gave up; its last output says why";
    case SIGFPE: return "an integer was divided by zero";
    default: return {};
  }
}

}  // namespace pipeline::orchestrators
