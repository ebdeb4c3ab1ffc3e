// A pipeline in another project, built against the installed package, and with the sources below
// the project.
#include <pipeline/pipeline.hpp>

#include <numeric>

namespace pl = pipeline;

std::vector<double> numbers(int count) {
  std::vector<double> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 1);
  return all;
}

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

int main(int argc, char** argv) {
  pl::Pipeline pipeline{"consumer"};
  auto all = pipeline.add(pl::step<numbers>(), pl::param("count", 4));
  pipeline.add(pl::step<sum>(), all);
  return pl::run_main(pipeline, argc, argv);
}
