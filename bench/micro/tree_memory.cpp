/// @file
/// The cost of a sample of the memory of a local step's processes.
#include <benchmark/benchmark.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <vector>

#include "orchestrators/usage/tree_memory.hpp"

namespace {
using namespace pipeline::orchestrators;

/// A process with workers, each of which holds 16 MiB.
class Workers {
 public:
  explicit Workers(int count) {
    int ends[2];
    if (::pipe(ends) != 0) return;
    root_ = ::fork();
    if (root_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (int i = 0; i < count; ++i)
        if (::fork() == 0) work(ends[1]);
      for (;;) ::pause();
    }
    char said;
    for (int i = 0; i < count; ++i) (void)!::read(ends[0], &said, 1);
    ::close(ends[0]);
    ::close(ends[1]);
  }
  ~Workers() {
    ::kill(root_, SIGKILL);
    ::waitpid(root_, nullptr, 0);
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  pid_t root() const { return root_; }

 private:
  [[noreturn]] static void work(int said) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    constexpr std::size_t held = 16 << 20;
    const std::vector<char> memory(held, 1);
    benchmark::DoNotOptimize(memory.data());
    (void)!::write(said, "x", 1);
    for (;;) ::pause();
  }
  pid_t root_ = -1;
};

void a_sample_of_a_local_step(benchmark::State& state) {
  const Workers workers(static_cast<int>(state.range(0)));
  TreeMemory tree(workers.root());
  tree.sample();
  // The second sample of an unchanged tree also reads each process's share of common memory (PSS),
  // which is slow and rare: the loop measures the usual samples.
  tree.sample();
  for (auto _ : state) tree.sample();
  if (state.range(0) > 0 && tree.peak() == 0) state.SkipWithError("no descendant was seen");
}
BENCHMARK(a_sample_of_a_local_step)->Arg(0)->Arg(1)->Arg(8)->Unit(benchmark::kMicrosecond);

}  // namespace
