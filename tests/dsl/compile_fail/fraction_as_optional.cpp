// A fraction where an optional whole number belongs.
// expect: parameter_fits() [with int Number = 1
// expect: Wanted = std::optional<int>
// expect: static assertion failed: pipeline: the value cannot be this argument of the function
// without losing something
#include <pipeline/pipeline.hpp>

double train(std::optional<int> epochs);

void declare(pipeline::Pipeline& pipeline) { pipeline.add(pipeline::step<train>(), 2.5); }
