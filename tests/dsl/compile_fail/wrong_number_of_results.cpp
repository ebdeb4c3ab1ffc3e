// Three names for a function with two results.
// expect: 3 names provided
// expect: decomposes into 2 elements
#include <pipeline/pipeline.hpp>

std::pair<double, double> split();

void declare(pipeline::Pipeline& pipeline) {
  auto [fit, held_out, rest] = pipeline.add(pipeline::step<split>());
}
