#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/file.hpp"
#include "spec/code_resolver.hpp"
#include "spec/pipeline_file.hpp"

namespace pipeline::spec {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class Include : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    core::make_folders((root() / name).parent_path());
    core::write_file_atomically(root() / name, text);
  }
  fs::path root() const { return folder_.path(); }
  PipelineSpec load_main(const LoadOptions& options = {}) {
    return load(root() / "pipeline.yaml", options);
  }
  std::string error_of(const LoadOptions& options = {}) {
    try {
      load_main(options);
    } catch (const core::InputError& error) {
      std::string text = error.what();
      for (std::size_t at; (at = text.find(root().string())) != std::string::npos;)
        text.replace(at, root().string().size(), "ROOT");
      return text;
    }
    return "no error";
  }
  static const StepSpec& step(const PipelineSpec& pipeline, std::string_view name) {
    for (const auto& each : pipeline.steps)
      if (each.name == name) return each;
    throw std::runtime_error("no step " + std::string(name));
  }

 private:
  core::TemporaryFolder folder_;
};

const std::string common = R"(parameters: {size: 1, name: small}
settings: {docker: {apt_packages: [curl]}}
steps:
  load:
    command: python load.py ${params.size} ${outputs.data}
    outputs: [data]
  clean:
    command: [clean, "${inputs.data}", "${inputs.raw}", "${outputs.table}"]
    inputs: {data: load.data, raw: fetch.raw}
    when: ${load.data.rows} > ${params.size}
    outputs: [table]
)";
const std::string main_text = R"(name: x
parameters: {size: 7, seed: 5}
settings: {docker: {parent_image: "python:3.11"}}
include:
  - {file: shared/common.yaml, prefix: prep, parameters: {size: 3}}
steps:
  fetch: {command: "fetch ${outputs.raw}", outputs: [raw]}
  train:
    command: [train, "${inputs.table}"]
    inputs: {table: prep-clean.table}
    after: [prep-load]
)";

TEST_F(Include, makes_the_steps_of_the_file_steps_of_the_pipeline) {
  write("pipeline.yaml", main_text);
  write("shared/common.yaml", common);
  const auto pipeline = load_main();
  std::vector<std::string> names;
  for (const auto& each : pipeline.steps) names.push_back(each.name);
  EXPECT_THAT(names, ElementsAre("prep-load", "prep-clean", "fetch", "train"));
  const auto& clean = step(pipeline, "prep-clean");
  EXPECT_EQ(clean.inputs[0].sources[0].step, "prep-load");
  EXPECT_EQ(clean.inputs[1].sources[0].step, "fetch");  // A step of the including file.
  EXPECT_EQ(clean.when->outputs.at("load.data.rows").source.step, "prep-load");
  EXPECT_EQ(clean.when->parameters.at("params.size"), 3);
  EXPECT_EQ(clean.line, 7u);
  EXPECT_EQ(clean.file, 1u);
  EXPECT_THAT(pipeline.included, ElementsAre(root() / "shared/common.yaml"));
  EXPECT_THAT(pipeline.sources, testing::Contains(root() / "shared/common.yaml"));
  EXPECT_EQ(step(pipeline, "prep-load").parameters.at("size"), 3);
}

TEST_F(Include, gives_the_pipelines_settings_to_the_steps_and_keeps_those_of_the_file) {
  write("pipeline.yaml", main_text);
  write("shared/common.yaml", common);
  const auto pipeline = load_main();
  EXPECT_EQ(step(pipeline, "prep-load").settings->docker.parent_image, "python:3.11");
  EXPECT_THAT(step(pipeline, "prep-load").settings->docker.apt_packages.items(),
              ElementsAre("curl"));
  EXPECT_FALSE(step(pipeline, "train").settings->docker.apt_packages);
}

TEST_F(Include, takes_the_code_from_the_folder_of_the_file) {
  write("pipeline.yaml", main_text);
  write("shared/common.yaml", common);
  write("shared/load.py", "import helper\n");
  write("shared/helper.py", "");
  write("load.py", "another one\n");
  const auto pipeline = load_main();
  CodeResolver code(pipeline);
  std::vector<std::string> files;
  for (const auto& file : code.code_of(step(pipeline, "prep-load")).files) {
    files.push_back(file.relative_path);
    EXPECT_EQ(file.source.parent_path(), root() / "shared");
  }
  EXPECT_THAT(files, ElementsAre("helper.py", "load.py"));
}

TEST_F(Include, resolves_paths_in_settings_against_the_folder_of_the_file) {
  write("pipeline.yaml", "name: x\ninclude: a/common.yaml\n");
  write("a/requirements.txt", "numpy==1.0\n");
  write("a/Dockerfile", "FROM x\n");
  write("a/data.csv", "1\n");
  write("a/common.yaml",
        "steps:\n  one:\n    command: [x]\n    inputs: {data: ./data.csv}\n"
        "    settings: {docker: {dockerfile: Dockerfile, requirements: requirements.txt, "
        "volumes: [\"./cache:/cache\", \"named:/x\"]}}\n");
  const auto pipeline = load_main();
  const auto& docker = std::as_const(pipeline.steps.at(0).settings)->docker;
  EXPECT_EQ(docker.dockerfile, "a/Dockerfile");
  EXPECT_THAT(docker.requirements.items(), ElementsAre("numpy==1.0"));
  EXPECT_THAT(docker.volumes.items(), ElementsAre("./a/cache:/cache", "named:/x"));
  EXPECT_EQ(pipeline.steps[0].inputs[0].data->path, root() / "a/data.csv");
}

TEST_F(Include, takes_parameters_of_the_pipeline_by_name_and_from_options) {
  write("pipeline.yaml",
        "name: x\nparameters: {size: 7}\ninclude:\n"
        "  - {file: c.yaml, prefix: a, parameters: {size: }}\n"
        "  - {file: c.yaml, prefix: b, parameters: [size]}\n"
        "  - {file: c.yaml, prefix: c}\n");
  write("c.yaml", "parameters: {size: 1}\nsteps: {one: {command: \"x ${params.size}\"}}\n");
  const auto pipeline = load_main({.parameters = {{"size", "9"}, {"c.size", "4"}}});
  EXPECT_EQ(step(pipeline, "a-one").parameters.at("size"), 9);
  EXPECT_EQ(step(pipeline, "b-one").parameters.at("size"), 9);
  EXPECT_EQ(step(pipeline, "c-one").parameters.at("size"), 4);
}

TEST_F(Include, can_be_nested) {
  write("pipeline.yaml", "name: x\ninclude: [{file: a/a.yaml, prefix: a}]\n");
  write("a/a.yaml",
        "include: [{file: ../b/b.yaml, prefix: b}]\n"
        "steps: {base: {command: x, outputs: [o]}, end: {command: y, after: [b-one]}}\n");
  write("b/b.yaml", "steps: {one: {command: z, inputs: {o: base.o}}}\n");
  const auto pipeline = load_main();
  EXPECT_EQ(step(pipeline, "a-b-one").inputs[0].sources[0].step, "a-base");
  EXPECT_THAT(step(pipeline, "a-end").after, ElementsAre("a-b-one"));
}

TEST_F(Include, reports_errors_at_their_place_in_the_included_file) {
  write("pipeline.yaml", main_text + "    timeout: abc\n");
  write("shared/common.yaml",
        "steps:\n  load: {command: \"x ${params.siez}\", outputs: [data]}\n  clean:\n"
        "    command: [x]\n    inputs: {t: load.dat}\n    outputs: [table]\n    comand: x\n"
        "parameters: {size: 1}\n");
  const auto text = error_of();
  EXPECT_THAT(text, HasSubstr("ROOT/pipeline.yaml:12:14: error: 'timeout' must be"));
  EXPECT_THAT(text, HasSubstr("ROOT/shared/common.yaml:5:17: error: step 'prep-load' makes no "
                              "output 'dat'\n        inputs: {t: load.dat}\n"));
  EXPECT_THAT(text, HasSubstr("ROOT/shared/common.yaml:7:5: error: unknown key 'comand'"));
  EXPECT_THAT(text, HasSubstr("ROOT/shared/common.yaml:2:22: error: the step has no parameter "
                              "'siez'"));
  EXPECT_THAT(text, HasSubstr("did you mean 'size'?"));
}

TEST_F(Include, reports_yaml_errors_of_the_included_file) {
  write("pipeline.yaml", "name: x\ninclude: c.yaml\n");
  write("c.yaml", "steps:\n  one: {command: [x}\n");
  EXPECT_THAT(error_of(), HasSubstr("ROOT/c.yaml:2:"));
  write("c.yaml", "- a\n");
  EXPECT_THAT(error_of(), HasSubstr("ROOT/c.yaml:1:1: error: an included file must be a map"));
  write("c.yaml", "setps: {one: {command: x}}\n");
  EXPECT_THAT(error_of(), HasSubstr("did you mean 'steps'?"));
}

TEST_F(Include, reports_nothing_that_follows_from_a_file_that_cannot_be_read) {
  write("pipeline.yaml",
        "name: x\nheadline: [a-one.loss]\ninclude:\n  - {file: c.yaml, prefix: a, parameters: "
        "{size: 3}}\n  - {file: c.yaml, prefix: b}\n"
        "steps: {s: {command: x, after: [a-one, b-one]}}\n");
  write("c.yaml", "parameters: {size: 1}\nsteps:\n  one: {command: [x}\n");
  const auto text = error_of();
  EXPECT_THAT(text, testing::StartsWith("ROOT/c.yaml:3:"));
  EXPECT_EQ(text.find("error:"), text.rfind("error:")) << text;
  fs::remove(root() / "c.yaml");
  EXPECT_THAT(error_of(), testing::Not(HasSubstr("there is no step")));
  EXPECT_THAT(error_of(), HasSubstr("ROOT/pipeline.yaml:5:12: error: the file 'c.yaml' does not"));
}

TEST_F(Include, refuses_cycles_and_files_that_are_not_there) {
  write("pipeline.yaml",
        "name: x\ninclude: [{file: a.yaml, prefix: a}]\nsteps: {s: {command: x}}\n");
  write("a.yaml", "include: [{file: b.yaml, prefix: b}]\n");
  write("b.yaml", "include: [{file: ./a.yaml, prefix: a}]\n");
  EXPECT_THAT(error_of(),
              HasSubstr("ROOT/b.yaml:1:18: error: the file './a.yaml' includes itself"));
  write("a.yaml", "include: a.yaml\n");
  EXPECT_THAT(error_of(), HasSubstr("ROOT/a.yaml:1:10: error: the file 'a.yaml' includes itself"));
  write("a.yaml", "include: pipeline.yaml\n");
  EXPECT_THAT(error_of(), HasSubstr("includes itself"));
  write("a.yaml", "include: none.yaml\n");
  EXPECT_THAT(error_of(),
              HasSubstr("ROOT/a.yaml:1:10: error: the file 'none.yaml' does not exist"));
  write("a.yaml", "include: /etc/passwd\n");
  EXPECT_THAT(error_of(), HasSubstr("is not a path relative to the file that includes it"));
}

TEST_F(Include, refuses_files_that_are_together_longer_than_a_single_one_may_be) {
  std::string text = "steps: {s: {command: x}}\n";
  for (int i = 0; i < 10'000; ++i) text += "# " + std::string(97, 'x') + "\n";
  write("a.yaml", text);
  std::string includes;
  for (int i = 0; i < 20; ++i)
    includes += "  - {file: a.yaml, prefix: p" + std::to_string(i) + "}\n";
  write("pipeline.yaml", "name: x\ninclude:\n" + includes);
  EXPECT_THAT(error_of(), HasSubstr("ROOT/pipeline.yaml:19:12: error: the included files have more "
                                    "than 16 MiB together"));
}

TEST_F(Include, refuses_more_than_20_files_that_include_one_another) {
  for (int i = 0; i < 30; ++i)
    write("f" + std::to_string(i) + ".yaml", "include: [f" + std::to_string(i + 1) +
                                                 ".yaml]\nsteps: {s" + std::to_string(i) +
                                                 ": {command: x}}\n");
  write("f30.yaml", "steps: {last: {command: x}}\n");
  write("pipeline.yaml", "name: x\ninclude: [f0.yaml]\n");
  EXPECT_THAT(error_of(), HasSubstr("ROOT/f18.yaml:1:11: error: more than 20 files form a "
                                    "chain in which each includes the next"));
  write("pipeline.yaml", "name: x\ninclude: [f12.yaml]\n");
  EXPECT_EQ(load_main().steps.size(), 19u);
}

TEST_F(Include, finds_the_step_that_is_nearest_to_the_file_that_names_it) {
  write("inner.yaml", "steps: {make: {command: x}, use: {command: x, after: [make]}}\n");
  write("outer.yaml",
        "include:\n  - {file: inner.yaml, prefix: in}\n"
        "steps: {make: {command: x}, use: {command: x, after: [make, in-make]}}\n");
  write("beside.yaml", "steps: {use: {command: x, after: [make]}}\n");
  write("pipeline.yaml",
        "name: x\ninclude: [{file: outer.yaml, prefix: out}, {file: beside.yaml, prefix: side}]\n"
        "steps: {make: {command: x}}\n");
  const auto pipeline = load_main();
  EXPECT_THAT(step(pipeline, "out-in-use").after, ElementsAre("out-in-make"));
  EXPECT_THAT(step(pipeline, "out-use").after, ElementsAre("out-make", "out-in-make"));
  EXPECT_THAT(step(pipeline, "side-use").after, ElementsAre("make"));
}

TEST_F(Include, refuses_parameters_of_many_files_before_memory_is_gone) {
  write("a.yaml", "steps: {s: {command: x}}\n");
  std::string text = "name: x\nparameters:\n";
  for (int i = 0; i < 40'000; ++i) text += "  p" + std::to_string(i) + ": 1\n";
  text += "include:\n";
  for (int i = 0; i < 900; ++i) text += "  - {file: a.yaml, prefix: p" + std::to_string(i) + "}\n";
  write("pipeline.yaml", text);
  EXPECT_THAT(error_of(), HasSubstr("all steps of a pipeline have at most 1 GiB together"));
}

TEST_F(Include, refuses_a_table_of_few_bytes_and_many_cells_before_memory_is_gone) {
  write("pipeline.yaml", "name: x\nsteps: {s: {command: x, matrix: {include: t.csv}}}\n");
  for (const auto& table :
       {std::string(20 << 20, ','), std::string(1 << 20, 'x') + std::string(1 << 20, '\n')}) {
    write("t.csv", table);
    EXPECT_THAT(error_of(), HasSubstr("ROOT/pipeline.yaml:2:43: error: the table 't.csv' takes too "
                                      "much memory"));
  }
}

TEST_F(Include, takes_a_quoted_empty_cell_of_a_table_of_one_column_for_a_row) {
  write("pipeline.yaml", "name: x\nsteps: {s: {command: x, matrix: {include: t.csv}}}\n");
  write("t.csv", "sample\n\n\r\n");
  EXPECT_THAT(error_of(), HasSubstr("has no rows"));
  write("t.csv", "sample\n\"\"\n");
  EXPECT_THAT(error_of(), testing::Not(HasSubstr("has no rows")));
}

TEST_F(Include, refuses_two_steps_of_the_same_name) {
  write("pipeline.yaml", "name: x\ninclude: [a.yaml]\nsteps: {one: {command: x}}\n");
  write("a.yaml", "steps: {one: {command: x}}\n");
  const auto text = error_of();
  EXPECT_THAT(text, HasSubstr("ROOT/pipeline.yaml:3:9: error: there are two steps called 'one'"));
  EXPECT_THAT(text, HasSubstr("a.yaml:1"));
}

TEST_F(Include, refuses_parameters_that_the_file_does_not_declare_or_of_another_kind) {
  write("c.yaml", "parameters: {size: 1}\nsteps: {one: {command: x}}\n");
  write("pipeline.yaml", "name: x\ninclude: [{file: c.yaml, parameters: {siez: 3}}]\n");
  EXPECT_THAT(error_of(), HasSubstr("ROOT/pipeline.yaml:2:39: error: the included file has no "
                                    "parameter 'siez'"));
  EXPECT_THAT(error_of(), HasSubstr("did you mean 'size'?"));
  write("pipeline.yaml", "name: x\ninclude: [{file: c.yaml, parameters: {size: big}}]\n");
  EXPECT_THAT(error_of(), HasSubstr("is a number, not a text"));
  write("pipeline.yaml", "name: x\ninclude: [{file: c.yaml, prefix: a.b}, {prefx: x}, 5]\n");
  EXPECT_THAT(error_of(), HasSubstr("'prefix' must be"));
  EXPECT_THAT(error_of(), HasSubstr("did you mean 'prefix'?"));
  write("pipeline.yaml", "name: x\ninclude: [{file: c.yaml, prefix: p}]\n");
  EXPECT_THAT(error_of({.parameters = {{"p.siez", "3"}}}), HasSubstr("there is no such parameter"));
}

TEST_F(Include, names_the_option_that_sets_a_parameter_of_the_file) {
  write("c.yaml",
        "parameters: {size: 1}\nsteps: {one: {command: 'x ${params.size}'}, two: {command: 'x "
        "${params.size} ${params.own}', parameters: {own: 2}}}\n");
  write("pipeline.yaml", "name: x\ninclude: [{file: c.yaml, prefix: p}]\n");
  const auto text = error_of({.parameters = {{"size", "3"}}});
  EXPECT_THAT(text, HasSubstr("it has: p.size, p-two.own\n"));
  EXPECT_THAT(text, HasSubstr("did you mean 'p.size'?"));
}

}  // namespace
}  // namespace pipeline::spec
