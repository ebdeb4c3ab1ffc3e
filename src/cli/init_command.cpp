#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "core/diagnostic.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"
#include "spec/pipeline_file.hpp"

namespace pipeline::cli {
namespace {

namespace fs = std::filesystem;

struct StarterFile {
  const char* name;
  std::string_view text;
};

constexpr std::string_view pipeline_text =
    R"(# yaml-language-server: $schema=pipeline.schema.json
# A pipeline to start from: `pipe run` runs it in containers, `pipe run -o local` as processes of this machine.
# `pipe schema` describes every key, `pipe plan` says what a run would do.
name: NAME
parameters:
  samples: 200

settings:
  docker:
    parent_image: python:3.11-slim-bookworm
    # requirements: [scikit-learn==1.7.2]     # Python packages of all steps; a step may have its own

steps:
  load:
    command: [python3, load.py, --samples, "${params.samples}", --out, "${outputs.data}"]
    outputs: [data]
  train:
    command: python3 train.py --data ${inputs.data} --model ${outputs.model}
    inputs: {data: load.data}
    outputs: [model]
    settings:
      resources: {cpu_count: 1, memory: 512MiB}
    retry: {max_retries: 1}
    timeout: 5m
  report:
    command: [python3, report.py, "${inputs.data}", "${inputs.model}", "${outputs.metrics}"]
    inputs: {data: load.data, model: train.model}
    outputs: [metrics]
)";

constexpr std::string_view load_text = R"("""Makes points around the line y = 3x + 2."""
import argparse
import csv
import random

arguments = argparse.ArgumentParser()
arguments.add_argument("--samples", type=int, required=True)
arguments.add_argument("--out", required=True)
options = arguments.parse_args()

rng = random.Random(0)
with open(options.out, "w", newline="") as file:
    table = csv.writer(file)
    for _ in range(options.samples):
        x = rng.uniform(0, 10)
        table.writerow([x, 3 * x + 2 + rng.gauss(0, 0.5)])
print(f"wrote {options.samples} points")
)";

constexpr std::string_view points_text = R"("""Reads the points that load.py has written."""
import csv


def read(path):
    with open(path, newline="") as file:
        return [(float(x), float(y)) for x, y in csv.reader(file)]
)";

constexpr std::string_view train_text = R"("""Fits a line by least squares."""
import argparse
import json

import points

arguments = argparse.ArgumentParser()
arguments.add_argument("--data", required=True)
arguments.add_argument("--model", required=True)
options = arguments.parse_args()

data = points.read(options.data)
mean_x = sum(x for x, _ in data) / len(data)
mean_y = sum(y for _, y in data) / len(data)
slope = sum((x - mean_x) * (y - mean_y) for x, y in data) / sum((x - mean_x) ** 2 for x, _ in data)
model = {"slope": slope, "intercept": mean_y - slope * mean_x}
with open(options.model, "w") as file:
    json.dump(model, file)
print(f"y = {model['slope']:.3f} x + {model['intercept']:.3f}")
)";

constexpr std::string_view report_text = R"("""Says how far the model is off."""
import json
import sys

import points

data_path, model_path, metrics_path = sys.argv[1:]
with open(model_path) as file:
    model = json.load(file)
data = points.read(data_path)
errors = [(y - model["slope"] * x - model["intercept"]) ** 2 for x, y in data]
metrics = {"rmse": (sum(errors) / len(errors)) ** 0.5, "points": len(errors)}
with open(metrics_path, "w") as file:
    json.dump(metrics, file, indent=2)
print(f"root mean square error {metrics['rmse']:.3f}")
)";

constexpr const char* schema_file = "pipeline.schema.json";  ///< The schema's text is generated.

constexpr std::array<StarterFile, 7> files{{{"pipeline.yaml", pipeline_text},
                                            {schema_file, ""},
                                            {"load.py", load_text},
                                            {"points.py", points_text},
                                            {"train.py", train_text},
                                            {"report.py", report_text},
                                            {".gitignore", ".pipe/\n__pycache__/\n"}}};

/// Returns a name for the pipeline: the folder's, converted to a valid one.
std::string pipeline_name(const fs::path& folder) {
  const auto name = folder.filename().string();
  return core::is_name(name) ? name : "starter";
}

/// Creates the file; never overwrites an existing file, not even one created at the same moment.
void write_new(const fs::path& path, std::string_view text) {
  const core::Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file) throw core::system_error("cannot write " + path.string(), errno);
  if (const int error = core::write_all(file.get(), text))
    throw core::system_error("cannot write " + path.string(), error);
}

}  // namespace

core::ExitCode init_command(Context& context) {
  const auto folder =
      (fs::absolute(context.options().init.folder) / "").lexically_normal().parent_path();
  std::error_code error;
  for (const auto& file : files) {
    if (fs::symlink_status(folder / file.name, error).type() != fs::file_type::not_found &&
        std::string_view(file.name) != ".gitignore" && file.name != schema_file)
      throw core::InputError(
          shown_path(folder / file.name) + " exists already; nothing was written",
          "give another folder: `pipe init DIR`");
  }
  core::make_folders(folder);
  std::vector<std::string> written;
  for (const auto& file : files) {
    if (fs::exists(folder / file.name, error)) continue;
    std::string text(file.text);
    if (file.name == schema_file) text = spec::schema().dump(2) + "\n";
    if (const auto name = text.find("NAME"); file.name == files[0].name && name != text.npos)
      text.replace(name, 4, pipeline_name(folder));
    write_new(folder / file.name, text);
    written.push_back(shown_path(folder / file.name));
  }
  if (context.options().json) {
    context.print_json(nlohmann::json{{"folder", folder.string()}, {"files", written}});
    return core::ExitCode::ok;
  }
  for (const auto& path : written) context.print("wrote " + path + "\n");
  const auto run = "pipe run " + core::shell_quote(shown_path(folder / "pipeline.yaml"));
  context.print("\nRun it:                 " + run + "\nwithout an engine:      " + run +
                " --orchestrator local\n");
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
