/// @file
/// Throughput of the mask that every byte of every log goes through.
#include <benchmark/benchmark.h>

#include <string>

#include "engine/attempt/secret_mask.hpp"

namespace {
using pipeline::engine::SecretMask;

/// @param range(0) number of secrets  @param range(1) whether the log holds one in each line
void log_is_masked(benchmark::State& state) {
  std::vector<std::string> secrets;
  for (std::int64_t i = 0; i < state.range(0); ++i)
    secrets.push_back("hf_" + std::to_string(i) + "aVeryLongTokenOfSomeService");
  const std::string line = "epoch 17 loss 0.123456 accuracy 0.98765 lr 1e-4 " +
                           (state.range(1) ? secrets.front() : std::string("nothing to hide")) +
                           "\n";
  std::string block;
  while (block.size() < 16'384) block += line;
  for (auto _ : state) {
    SecretMask mask(secrets);
    std::size_t shown = mask.feed(block).size();
    shown += mask.finish().size();
    benchmark::DoNotOptimize(shown);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(block.size()));
}
BENCHMARK(log_is_masked)->Args({0, 0})->Args({1, 0})->Args({1, 1})->Args({20, 0})->Args({20, 1});

}  // namespace
