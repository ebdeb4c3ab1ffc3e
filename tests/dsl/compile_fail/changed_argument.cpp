// The function changes its argument, but no other step would see the change.
// expect: static assertion failed: pipeline: a step's function takes its arguments by value or by
// const reference
#include <pipeline/pipeline.hpp>

void normalise(std::vector<double>& values);
std::vector<double> load();

void declare(pipeline::Pipeline& pipeline) {
  pipeline.add(pipeline::step<normalise>(), pipeline.add(pipeline::step<load>()));
}
