/// @file
/// A log that keeps nothing.
#pragma once

#include "orchestrators/orchestrator.hpp"

namespace pipeline::test {

struct NoLog : orchestrators::LogSink {
  void write(Stream, std::string_view) override {}
};

}  // namespace pipeline::test
