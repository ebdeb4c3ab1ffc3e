// Learns handwritten digits: `digits run -o local`, or in containers `digits run`. PARENT_IMAGE
// names another image for the C++ steps: any will do.
#include <cstdlib>

#include "steps.hpp"

namespace pl = pipeline;
using namespace pl::literals;

int main(int argc, char** argv) {
  const char* parent = std::getenv("PARENT_IMAGE");
  pl::Pipeline digits{
      "digits-cpp",
      {.description = "Small neural networks learn handwritten digits; the best is kept and drawn",
       .docker = {.parent_image = parent ? parent : "debian:bookworm-slim"},
       .resources = {.cpu_count = 1, .memory = 512_MiB}}};

  auto all = digits.add(pl::step<load>({.code = {"data"}}), "data/digits.txt");
  auto [training, validation, test] = digits.add(
      pl::step<split>({.arguments = {"data", "share", "seed"}}), all, 0.2, pl::param("seed", 7));

  // Six of them side by side: a step for each combination.
  auto models =
      digits.map(pl::step<train>({.arguments = {"data", "neurons", "rate", "epochs"}}), training,
                 pl::each({16, 64}), pl::each({0.03, 0.1, 0.3}), pl::param("epochs", 30));
  auto scores = digits.map(pl::step<score>(), models, validation);
  auto best = digits.add(pl::step<choose>(), models, scores);
  auto evaluation = digits.add(pl::step<evaluate>(), best, test);

  // Another language in between, in an environment of its own.
  auto plot = digits.add(pl::command("plot",
                                     {"python", "plot.py", "${inputs.evaluation}",
                                      "${inputs.scores}", "${outputs.picture}"},
                                     {.docker = {.parent_image = "python:3.11-slim-bookworm",
                                                 .requirements = {"matplotlib==3.10.7"}}}),
                         {{"evaluation", evaluation}, {"scores", scores}});
  digits.add(pl::step<report>(), plot["picture"], evaluation);
  return pl::run_main(digits, argc, argv);
}
