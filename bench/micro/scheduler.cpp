/// @file
/// 100,000 steps through the graph and the scheduler: a step should cost well under a microsecond.
#include <benchmark/benchmark.h>

#include "model/graph.hpp"

namespace {
using namespace pipeline;

/// `width` chains side by side; every step also waits for its left neighbour's predecessor, so that
/// the graph does not fall apart.
std::vector<std::vector<model::StepIndex>> columns(std::size_t count, std::size_t width) {
  std::vector<std::vector<model::StepIndex>> needs(count);
  for (std::size_t step = width; step < count; ++step) {
    needs[step] = {static_cast<model::StepIndex>(step - width)};
    if (step % width) needs[step].push_back(static_cast<model::StepIndex>(step - width - 1));
  }
  return needs;
}

void graph_is_made(benchmark::State& state) {
  const auto needs = columns(100'000, static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    const model::Graph graph(needs);
    benchmark::DoNotOptimize(graph.topological_order());
  }
  state.SetItemsProcessed(state.iterations() * 100'000);
}
BENCHMARK(graph_is_made)->Arg(1)->Arg(100)->Arg(100'000)->Unit(benchmark::kMillisecond);

void all_steps_succeed(benchmark::State& state) {
  const model::Graph graph(columns(100'000, static_cast<std::size_t>(state.range(0))));
  for (auto _ : state) {
    model::Scheduler scheduler(graph);
    while (const auto step = scheduler.take()) scheduler.mark_succeeded(*step);
    if (!scheduler.done()) state.SkipWithError("some steps never ran");
  }
  state.SetItemsProcessed(state.iterations() * 100'000);
}
BENCHMARK(all_steps_succeed)->Arg(1)->Arg(100)->Arg(100'000)->Unit(benchmark::kMillisecond);

}  // namespace
