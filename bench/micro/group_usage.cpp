/// @file
/// The cost of the accounts of a container's step: those of a short step are read when it begins
/// and when its first process has ended; a longer step is sampled besides.
#include <benchmark/benchmark.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "orchestrators/usage/group_usage.hpp"

namespace {
namespace fs = std::filesystem;
using namespace pipeline::orchestrators;

/// A group where an engine would make a container's, with a process in it.
class Group {
 public:
  Group() {
    process_ = ::fork();
    if (process_ == 0)
      for (;;) ::pause();
    const fs::path mounts = "/sys/fs/cgroup";
    std::vector<fs::path> trees{mounts};
    if (!fs::exists(mounts / "cgroup.controllers"))
      trees = {mounts / "memory", mounts / "cpuacct", mounts / "blkio"};
    for (const auto& tree : trees) {
      const auto folder = tree / "docker" / name;
      std::error_code refused;
      fs::create_directories(folder, refused);
      std::ofstream(folder / "cgroup.procs") << process_;
      folders_.push_back(folder);
    }
  }
  ~Group() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    for (const auto& folder : folders_)
      for (int tries = 0; ::rmdir(folder.c_str()) != 0 && tries < 1000; ++tries) ::usleep(1000);
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  const std::string name = "pipe-bench-" + std::to_string(::getpid());

 private:
  pid_t process_;
  std::vector<fs::path> folders_;
};

void accounts_of_a_short_step(benchmark::State& state) {
  const Group group;
  for (auto _ : state) {
    const auto folders = find_container_group(group.name);
    const auto first = first_process(folders);
    if (first == 0) return state.SkipWithError("no control group can be made");
    const pipeline::core::Descriptor end(static_cast<int>(::syscall(SYS_pidfd_open, first, 0)));
    GroupUsage usage(folders);
    usage.sample();
    benchmark::DoNotOptimize(usage.read());
  }
}
BENCHMARK(accounts_of_a_short_step)->Unit(benchmark::kMicrosecond);

void a_sample_of_a_long_step(benchmark::State& state) {
  const Group group;
  GroupUsage usage(find_container_group(group.name));
  for (auto _ : state) usage.sample();
}
BENCHMARK(a_sample_of_a_long_step)->Unit(benchmark::kMicrosecond);

}  // namespace
