// run_main(), for a C++ program with its own pipeline.
#include <algorithm>

#include <pipeline/pipeline.hpp>

#include "cli/command_line.hpp"
#include "dsl/step_entry.hpp"

namespace pipeline {

int run_main(const Pipeline& pipeline, int argc, const char* const* argv) {
  if (const auto step = dsl::step_to_enter()) return dsl::enter_step(pipeline, *step);
  cli::Options start;
  start.program = &pipeline;
  start.name = argc > 0 ? argv[0] : pipeline.name();
  return cli::run_command_line({argv + std::min(argc, 1), argv + argc}, start);
}

}  // namespace pipeline
