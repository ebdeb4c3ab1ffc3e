// Both results of a step for one argument.
// expect: argument_fits() [with int Number = 1
// expect: std::tuple<pipeline::Artifact<double>, pipeline::Artifact<double>
// expect: static assertion failed: pipeline: the artifact is of another type than the function's
// argument
#include <pipeline/pipeline.hpp>

std::pair<double, double> split();
double twice(double value);

void declare(pipeline::Pipeline& pipeline) {
  auto both = pipeline.add(pipeline::step<split>());
  pipeline.add(pipeline::step<twice>(), both);
}
