// A function that takes two arguments gets one.
// expect: number_of_arguments() [with
// expect: int Given = 1
// expect: int Wanted = 2
// expect: static assertion failed: pipeline: add() needs one artifact or value for each argument of
// the function
#include <pipeline/pipeline.hpp>

double load();
double scale(double value, double factor);

void declare(pipeline::Pipeline& pipeline) {
  auto value = pipeline.add(pipeline::step<load>());
  pipeline.add(pipeline::step<scale>(), value);
}
