// A fraction where a whole number belongs.
// expect: parameter_fits() [with int Number = 1
// expect: Given = double
// expect: Wanted = int
// expect: static assertion failed: pipeline: the value cannot be this argument of the function
// without losing something
#include <pipeline/pipeline.hpp>

double train(int epochs);

void declare(pipeline::Pipeline& pipeline) { pipeline.add(pipeline::step<train>(), 0.5); }
