// The handle of a step without results where a text belongs: its name would be the value.
// expect: argument_fits() [with int Number = 1
// expect: Given = pipeline::StepHandle
// expect: static assertion failed: pipeline: the artifact is of another type than the function's
// expect: argument
#include <pipeline/pipeline.hpp>

void prepare();
void use(std::string text);

void declare(pipeline::Pipeline& pipeline) {
  auto prepared = pipeline.add(pipeline::step<prepare>());
  pipeline.add(pipeline::step<use>(), prepared);
}
