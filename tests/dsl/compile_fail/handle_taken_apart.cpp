// Two names for the handle of one result, a plain struct.
// expect: static assertion failed: pipeline: this step has one result, whose handle cannot be taken
// expect: apart: return a std::tuple, or specialise pl::is_outputs for the struct, to get several
#include <pipeline/pipeline.hpp>

struct Fitted {
  double model, data;
};
Fitted fit();

void declare(pipeline::Pipeline& pipeline) {
  const auto [model, data] = pipeline.add(pipeline::step<fit>());
}
