// A model where the data belongs.
// expect: argument_fits() [with int Number = 2
// expect: pipeline::Artifact<Model>
// expect: Wanted = Data
// expect: static assertion failed: pipeline: the artifact is of another type than the function's
// argument
#include <pipeline/pipeline.hpp>

struct Data {
  std::vector<double> values;
};
struct Model {
  std::vector<double> weights;
};
Data load();
Model train(const Data& data);
double evaluate(const Model& model, const Data& data);

void declare(pipeline::Pipeline& pipeline) {
  auto data = pipeline.add(pipeline::step<load>());
  auto model = pipeline.add(pipeline::step<train>(), data);
  pipeline.add(pipeline::step<evaluate>(), model, model);
}
