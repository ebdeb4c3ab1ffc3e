/// @file
/// The parts of a step's cache key and the digest over them.
#include <benchmark/benchmark.h>

#include "engine/cache/cache_key.hpp"

namespace {
using namespace pipeline;

StepSpec usual_step() {
  StepSpec step{.name = "train"};
  for (const char* word : {"python", "train.py", "--out"})
    step.command.arguments.push_back({{std::string(word)}});
  step.command.arguments.push_back({{Template::Reference{Template::Placeholder::output, "model"}}});
  step.parameters = {{"c", 1.0}, {"epochs", 10}, {"solver", "lbfgs"}};
  step.inputs = {{"data", {{"load", "data"}}}};
  step.outputs = {{"model", "model"}};
  step.settings->docker.requirements = {"scikit-learn==1.5.2", "joblib==1.4.2"};
  step.settings->docker.parent_image = "python:3.11-slim-bookworm";
  return step;
}

void key_of_a_step(benchmark::State& state) {
  const auto step = usual_step();
  const auto digest = core::sha256("data").hex();
  const std::vector<store::KeyPart> code{{"code train.py", digest}, {"code features.py", digest}};
  for (auto _ : state) {
    auto parts = engine::key_parts("bench", step, {{"OMP_NUM_THREADS", "1"}}, code, digest);
    parts.push_back(engine::input_part(step.inputs[0], digest + " data"));
    benchmark::DoNotOptimize(engine::key_of(parts));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(key_of_a_step);

}  // namespace
