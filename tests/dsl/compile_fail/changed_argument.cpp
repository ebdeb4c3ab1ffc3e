// An argument that the function changes: the change would reach nobody.
// expect: static assertion failed: pipeline: a step's function takes its arguments by value or by
// const reference
#include <pipeline/pipeline.hpp>

void normalise(std::vector<double>& values);
std::vector<double> load();

void declare(pipeline::Pipeline& pipeline) {
  pipeline.add(pipeline::step<normalise>(), pipeline.add(pipeline::step<load>()));
}
