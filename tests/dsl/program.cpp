// A program with a pipeline of every kind of step, for the tests that drive it as a user would.
#include <pipeline/pipeline.hpp>
#include <pipeline/run.hpp>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <iostream>
#include <thread>

namespace pl = pipeline;
using namespace pipeline::literals;

struct Points {
  std::vector<double> x, y;
};
struct Line {
  double slope, offset;
};
struct Parts {
  Points fit, held;
};
template <>
inline constexpr bool pl::is_outputs<Parts> = true;

Points make(int count, double slope) {
  Points points;
  for (int i = 0; i < count; ++i) {
    points.x.push_back(i);
    points.y.push_back(slope * i + 1);
  }
  return points;
}

Parts split(const Points& all, double held_out) {
  Parts parts;
  const auto border = static_cast<std::size_t>(static_cast<double>(all.x.size()) * (1 - held_out));
  for (std::size_t i = 0; i < all.x.size(); ++i) {
    auto& part = i < border ? parts.fit : parts.held;
    part.x.push_back(all.x[i]);
    part.y.push_back(all.y[i]);
  }
  return parts;
}

Line fit(const Points& points, double ridge, pl::StepContext& context) {
  double xx = ridge, xy = 0;
  for (std::size_t i = 0; i < points.x.size(); ++i) {
    xx += points.x[i] * points.x[i];
    xy += points.x[i] * (points.y[i] - 1);
  }
  context.log("fitted", {{"points", points.x.size()}, {"ridge", ridge}});
  context.progress(0.5, "half");
  context.metric("slope", xy / xx);
  return {xy / xx, 1};
}

double error_of(const Line& line, const Points& points) {
  double sum = 0;
  for (std::size_t i = 0; i < points.x.size(); ++i)
    sum += std::abs(line.slope * points.x[i] + line.offset - points.y[i]);
  return sum;
}

Line best(const std::vector<Line>& lines, const std::vector<double>& errors) {
  return lines.at(
      static_cast<std::size_t>(std::min_element(errors.begin(), errors.end()) - errors.begin()));
}

struct Trial {
  double rate;
  int depth;
};

std::vector<Trial> propose(int count) {
  std::vector<Trial> trials;
  for (int i = 0; i < count; ++i) trials.push_back({0.5 * i, i});
  return trials;
}

double loss_of(const Trial& trial) { return std::abs(trial.rate - 1.0) + trial.depth; }

std::vector<std::string> words_of(int) { return {"one", "two words", "$(three)"}; }
std::size_t length_of(const std::string& word) { return word.size(); }

double smallest(const std::vector<double>& losses) {
  return *std::min_element(losses.begin(), losses.end());
}

/// Stored by a codec of its own, so a vector of pages is a folder of files.
struct Page {
  explicit Page(std::string content) : text(std::move(content)) {}
  std::string text;
};
template <>
struct pipeline::Codec<Page> {
  static constexpr std::string_view extension = ".txt";
  static void save(const Page& page, const std::string& to) { std::ofstream(to) << page.text; }
  static Page load(const std::string& from) {
    std::ifstream in(from);
    return Page({std::istreambuf_iterator<char>(in), {}});
  }
};

std::vector<Page> pages_of(int count) {
  std::vector<Page> pages;
  for (int i = 0; i < count; ++i) pages.emplace_back(std::string(static_cast<std::size_t>(i), 'x'));
  return pages;
}

std::size_t letters_of(const Page& page) { return page.text.size(); }

int count_lines(const pl::File& report) {
  std::ifstream in(report.path);
  return static_cast<int>(std::count(std::istreambuf_iterator<char>(in), {}, '\n'));
}

int fails(bool deep) {
  try {
    if (deep) std::vector<int>().at(3);
    throw std::invalid_argument("the value is s3cret-value");
  } catch (const std::out_of_range&) {
    std::throw_with_nested(std::runtime_error("cannot read the table"));
  }
}

int crashes() {
  volatile int* nowhere = nullptr;
  return *nowhere;
}

int stubborn(pl::StepContext& context) {
  context.log("started");
  for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
}

std::string polite(pl::StepContext& context) {
  context.log("started");
  while (!context.stopping()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  context.log(pl::Level::warning, "stopping");
  return "stopped";
}

int main(int argc, char** argv) {
  const std::string which = std::getenv("DSL_PROGRAM") ? std::getenv("DSL_PROGRAM") : "lines";
  pl::Pipeline pipeline{which, pl::PipelineOptions{.environment = {{"DSL_PROGRAM", which}}}};
  if (which == "lines") {
    auto all = pipeline.add(pl::step<make>({.arguments = {"count", "slope"}}),
                            pl::param("count", 100), 2.0);
    auto [fit_points, held] = pipeline.add(pl::step<split>(), all, 0.2);
    auto lines = pipeline.map(pl::step<fit>({.arguments = {"points", "ridge"}}), fit_points,
                              pl::each({0.0, 1000.0}));
    auto errors = pipeline.map(pl::step(error_of, {.name = "error"}), lines, held);
    auto winner = pipeline.add(pl::step<best>(), lines, errors);
    auto report = pipeline.add(
        pl::script("report", {"sh"}, R"(
cat "$PIPE_INPUT_LINE" > "$PIPE_OUTPUT_TEXT"
echo "of ${PIPE_PARAM_TITLE}" >> "$PIPE_OUTPUT_TEXT"
)",
                   {.outputs = {{"text", "report.txt"}}, .parameters = {{"title", "lines"}}}),
        {{"line", winner}});
    pipeline.add(pl::step<count_lines>(), report["text"]);
  } else if (which == "grows") {
    auto trials = pipeline.add(pl::step<propose>(), pl::param("count", 3));
    auto losses = pipeline.map(pl::step<loss_of>({.arguments = {"trial"}}), trials);
    pipeline.add(pl::step<smallest>(), losses);
    auto words = pipeline.add(pl::step<words_of>(), 1);
    pipeline.map(pl::step<length_of>({.arguments = {"word"}}), words);
    auto pages = pipeline.add(pl::step<pages_of>(), 12);
    pipeline.map(pl::step<letters_of>({.arguments = {"page"}}), pages);
  } else if (which == "throws") {
    pipeline.add(pl::step<fails>({.secrets = {{.name = "TOKEN"}}}), true);
    pipeline.add(pl::step(fails, {.name = "tells", .secrets = {{.name = "TOKEN"}}}), false);
  } else if (which == "gated") {
    const char* gate = std::getenv("GATE");
    auto one = pipeline.add(pl::shell("one", "echo one > ${outputs.text}"));
    pipeline.add(pl::shell("two",
                           "while [ ! -e \"$GATE\" ]; do sleep 0.05; done\n"
                           "cat ${inputs.text} > ${outputs.copy}",
                           {.environment = {{"GATE", gate ? gate : ""}}}),
                 {{"text", one["text"]}});
  } else if (which == "crashes") {
    pipeline.add(pl::step<crashes>());
  } else if (which == "stubborn") {
    pipeline.add(pl::step<stubborn>());
  } else if (which == "polite") {
    pipeline.add(pl::step<polite>({.timeout = 1_s}));
  } else if (which == "wrong") {
    pipeline.add(pl::step(crashes, {.name = "one.two"}));
    pipeline.add(pl::step(crashes, {.name = "twice", .docker = {.volumes = {"nonsense"}}}));
    pipeline.add(pl::step(crashes, {.name = "twice", .outputs = {"a", "b"}}));
    pipeline.add(pl::command("echo", {"echo", "${inputs.nothing}"}));
  }
  if (argc > 1 && std::string_view(argv[1]) == "embedded") {
    const auto result = pl::run(pipeline, {.orchestrator = "local"});
    for (const auto& step : result.steps)
      std::cout << step.name << " " << pl::to_string(step.status) << "\n";
    return result.succeeded() ? 0 : 1;
  }
  return pl::run_main(pipeline, argc, argv);
}
