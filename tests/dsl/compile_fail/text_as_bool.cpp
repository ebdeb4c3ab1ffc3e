// A text where a bool belongs: as a pointer it would be true, whatever it says.
// expect: parameter_fits() [with int Number = 1
// expect: Wanted = bool
// expect: static assertion failed: pipeline: the value cannot be this argument of the function
// without losing something
#include <pipeline/pipeline.hpp>

double train(bool shuffle);

void declare(pipeline::Pipeline& pipeline) { pipeline.add(pipeline::step<train>(), "false"); }
