/// @file
/// SHA-256: its throughput on large data, and what a short text costs.
#include <benchmark/benchmark.h>

#include <string>

#include "core/digest.hpp"

namespace {
using namespace pipeline;

void sha256_of_bytes(benchmark::State& state) {
  const std::string data(static_cast<std::size_t>(state.range(0)), 'x');
  for (auto _ : state) benchmark::DoNotOptimize(core::sha256(data));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(sha256_of_bytes)->Arg(64)->Arg(4 << 10)->Arg(16 << 20);

void digest_as_hex_and_back(benchmark::State& state) {
  const auto digest = core::sha256("some bytes");
  for (auto _ : state) benchmark::DoNotOptimize(core::Digest::from_hex(digest.hex()));
}
BENCHMARK(digest_as_hex_and_back);

}  // namespace
