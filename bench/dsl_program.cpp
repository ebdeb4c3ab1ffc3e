// Pipelines of functions, for the section `dsl`; DSL_BENCH says which. `--nothing` ends at once,
// `--spawn N` starts that N times, one after another: the floor for a step that is a process.
#include <spawn.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <string_view>
#include <thread>

#include <pipeline/pipeline.hpp>

namespace pl = pipeline;

namespace {

constexpr std::size_t gibibyte = std::size_t{1} << 30;

int next(int number) { return number + 1; }

int sleeps() {
  std::this_thread::sleep_for(std::chrono::seconds(60));
  return 0;
}

pl::Array<double> make_array() {
  pl::Array<double> array(gibibyte / sizeof(double));
  std::iota(array.span().begin(), array.span().end(), 0.0);
  return array;
}
double sum_array(const pl::Array<double>& array) {
  return std::accumulate(array.begin(), array.end(), 0.0);
}

std::vector<double> make_vector() {
  std::vector<double> vector(gibibyte / sizeof(double));
  std::iota(vector.begin(), vector.end(), 0.0);
  return vector;
}
double sum_vector(const std::vector<double>& vector) {
  return std::accumulate(vector.begin(), vector.end(), 0.0);
}

int spawn(const char* self, int count) {
  const std::string program =
      std::string(self).find('/') == std::string::npos ? "/proc/self/exe" : self;
  for (int i = 0; i < count; ++i) {
    std::string nothing = "--nothing";
    char* words[] = {const_cast<char*>(program.c_str()), nothing.data(), nullptr};
    pid_t child = 0;
    int status = 0;
    if (::posix_spawn(&child, program.c_str(), nullptr, nullptr, words, environ) != 0 ||
        ::waitpid(child, &status, 0) < 0 || status != 0)
      return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (first == "--nothing") return 0;
  if (first == "--spawn") return spawn(argv[0], std::atoi(argv[2]));

  const char* name = std::getenv("DSL_BENCH");
  const std::string which = name ? name : "chain";
  const char* number_of_steps = std::getenv("DSL_BENCH_STEPS");
  const std::string count = number_of_steps ? number_of_steps : "100";
  pl::Pipeline pipeline{which,
                        {.docker = {.parent_image = "debian:bookworm-slim",
                                    .target_repository = "pipe-bench",
                                    .network = "none"},
                         .environment = {{"DSL_BENCH", which}, {"DSL_BENCH_STEPS", count}}}};
  if (which == "chain") {
    auto number = pipeline.add(pl::step(next, {.name = "s0"}), 0);
    for (int i = 1; i < std::stoi(count); ++i)
      number = pipeline.add(pl::step(next, {.name = "s" + std::to_string(i)}), number);
  } else if (which == "sleeps") {
    pipeline.add(pl::step<sleeps>());
  } else if (which == "array") {
    pipeline.add(pl::step<sum_array>(), pipeline.add(pl::step<make_array>()));
  } else if (which == "vector") {
    pipeline.add(pl::step<sum_vector>(), pipeline.add(pl::step<make_vector>()));
  }
  return pl::run_main(pipeline, argc, argv);
}
