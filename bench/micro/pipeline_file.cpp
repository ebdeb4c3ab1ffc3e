/// @file
/// A pipeline file of 1,000 and 10,000 steps to a PipelineSpec.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <string>

#include "spec/pipeline_file.hpp"

namespace {
using namespace pipeline;

std::string pipeline_text(std::int64_t steps) {
  std::string text = "name: bench\nsteps:\n";
  for (std::int64_t step = 0; step < steps; ++step) {
    text += "  s" + std::to_string(step) +
            ":\n    command: [cp, \"${inputs.file}\", \"${outputs.file}\"]\n    outputs: [file]\n";
    if (step > 0) text += "    inputs: {file: s" + std::to_string(step - 1) + ".file}\n";
    if (step == 0) text.replace(text.find("${inputs.file}"), 14, "seed");
  }
  return text;
}

void file_is_parsed(benchmark::State& state) {
  const auto text = pipeline_text(state.range(0));
  const auto file = std::filesystem::temp_directory_path() /
                    "pipeline.yaml";  // never read: only a place for relative paths
  for (auto _ : state) {
    const auto parsed = spec::parse(text, file);
    if (parsed.steps.size() != static_cast<std::size_t>(state.range(0)))
      state.SkipWithError("steps are missing");
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}
BENCHMARK(file_is_parsed)->Arg(1'000)->Arg(10'000)->Unit(benchmark::kMillisecond);

}  // namespace
