// A lambda whose captures would be in no key.
// expect: static assertion failed: pipeline: the lambda of a step may capture nothing
#include <pipeline/pipeline.hpp>

void declare(pipeline::Pipeline& pipeline, int epochs) {
  pipeline.add(pipeline::step([epochs] { return epochs; }, {.name = "train"}));
}
