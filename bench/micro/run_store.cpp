/// @file
/// The cost of making a step's success durable, and of looking one up.
#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>

#include "core/digest.hpp"
#include "store/run_store.hpp"

namespace {
using namespace pipeline;
using namespace pipeline::store;

class Folder {
 public:
  Folder() {
    auto pattern = (std::filesystem::temp_directory_path() / "pipe-bench-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) throw std::runtime_error("cannot make a folder " + pattern);
    path = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::filesystem::path path;
};

/// The rows of one step that has succeeded.
void record_success(RunStore& store, const std::string& run, std::int64_t number) {
  const auto name = "step" + std::to_string(number);
  const auto key = core::sha256(run + name).hex();
  const std::vector<OutputRecord> outputs{{"file", "file", core::sha256(name), false, 5}};
  store.put_attempt(
      {.run = run, .step = name, .number = 1, .exit_code = 0, .log = run + "/" + name + ".1.log"});
  store.put_step({.run = run,
                  .name = name,
                  .status = StepStatus::succeeded,
                  .key = key,
                  .attempts = 1,
                  .parameters = "{}",
                  .outputs = outputs});
  store.add_cache_entry(
      {key, run, name, outputs}, "bench",
      {{"command", "cp a b"}, {"code", key}, {"environment", key}, {"input file", key}});
}

RunStore store_with_run(const Folder& folder) {
  RunStore store(folder.path);
  store.add_run({.id = "run",
                 .pipeline = "bench",
                 .orchestrator = "local",
                 .file = "/pipeline.yaml",
                 .parameters = "{}",
                 .driver = ProcessId::self()});
  return store;
}

/// @param range(0) steps that are committed together
void success_is_committed(benchmark::State& state) {
  const Folder folder;
  auto store = store_with_run(folder);
  std::int64_t number = 0;
  for (auto _ : state)
    store.transaction([&] {
      for (std::int64_t i = 0; i < state.range(0); ++i) record_success(store, "run", number++);
    });
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(success_is_committed)->Arg(1)->Arg(100)->Unit(benchmark::kMicrosecond);

void success_is_found(benchmark::State& state) {
  const Folder folder;
  auto store = store_with_run(folder);
  constexpr std::int64_t steps = 10'000;
  store.transaction([&] {
    for (std::int64_t i = 0; i < steps; ++i) record_success(store, "run", i);
  });
  std::int64_t number = 0;
  for (auto _ : state)
    if (!store.find_cached(core::sha256("runstep" + std::to_string(number++ % steps)).hex()))
      state.SkipWithError("a success is not found");
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(success_is_found);

void store_is_opened(benchmark::State& state) {
  const Folder folder;
  store_with_run(folder);
  for (auto _ : state) RunStore store(folder.path);
}
BENCHMARK(store_is_opened)->Unit(benchmark::kMicrosecond);

}  // namespace
