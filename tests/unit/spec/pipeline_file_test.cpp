#include "spec/pipeline_file.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <regex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "settings/settings.hpp"
#include "support/error_text.hpp"

namespace pipeline::spec {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* example = R"(name: digits
parameters: {test_size: 0.25, seed: 7}
environment: [CUDA_VISIBLE_DEVICES]
settings:
  docker:
    parent_image: python:3.11-slim-bookworm
    requirements: [scikit-learn==1.7.2]
    environment: {A: one, B: two}
retry: {max_retries: 1, delay: 500ms}
timeout: 1h
steps:
  load:
    command: [python, load.py, --out, "${outputs.data}"]
    outputs: [data]
  train:
    command: python train.py --data ${inputs.data} --c ${params.c} $HOME $${x} > ${outputs.plot}
    parameters: {c: 1.0, seed: "8"}
    inputs: {data: load.data}
    outputs: {model: , plot: confusion.png}
    settings:
      docker: {requirements: [], environment: {B: 3}}
      resources: {cpu_count: 1, memory: 1GiB}
    environment: {CUDA_VISIBLE_DEVICES: "0", EMPTY: }
    secrets: [TOKEN, {name: KEY, file: keys/api}]
    retry: {max_retries: 2}
    timeout: 10m
    cache: false
    after: [load]
    version: 2024-01
)";

PipelineSpec parse_text(const std::string& text, const LoadOptions& options = {}) {
  return parse(text, "/nowhere/pipeline.yaml", options);
}

std::string file_error(const std::string& text, const LoadOptions& options = {}) {
  return test::error_text([&] { parse_text(text, options); });
}

std::string with_command(const std::string& command) {
  return "name: x\nsteps: {a: {command: " + command + "}}\n";
}

TEST(PipelineFile, all_keys_of_a_step_are_read) {
  const auto pipeline = parse_text(example);
  EXPECT_EQ(pipeline.name, "digits");
  EXPECT_EQ(pipeline.root, "/nowhere");
  ASSERT_EQ(pipeline.steps.size(), 2u);
  const StepSpec& train = pipeline.steps[1];
  EXPECT_EQ(train.line, 15u);
  EXPECT_EQ(train.column, 3u);
  EXPECT_TRUE(train.command.shell);
  EXPECT_EQ(train.inputs[0].sources.at(0).step, "load");
  EXPECT_EQ(train.outputs[0].file_name, "model");
  EXPECT_EQ(train.outputs[1].file_name, "confusion.png");
  EXPECT_THAT(train.after, ElementsAre("load"));
  EXPECT_EQ(train.secrets[0].name, "TOKEN");
  EXPECT_EQ(train.secrets[1].file, "/nowhere/keys/api");
  EXPECT_EQ(*train.timeout, std::chrono::minutes(10));
  EXPECT_FALSE(train.cache);
  EXPECT_EQ(train.version, "2024-01");
}

TEST(PipelineFile, a_steps_value_replaces_the_pipelines) {
  const auto pipeline = parse_text(example);
  const StepSpec &load = pipeline.steps[0], &train = pipeline.steps[1];
  EXPECT_TRUE(load.parameters.empty());
  EXPECT_EQ(train.parameters.at("seed"), "8");
  EXPECT_EQ(load.environment.at("CUDA_VISIBLE_DEVICES"), std::nullopt);
  EXPECT_EQ(train.environment.at("CUDA_VISIBLE_DEVICES"), "0");
  EXPECT_EQ(train.environment.at("EMPTY"), std::nullopt);
  EXPECT_EQ(train.retry->max_retries, 2u);
  EXPECT_EQ(train.retry->delay, std::chrono::milliseconds(500));
  EXPECT_EQ(*load.timeout, std::chrono::hours(1));
  EXPECT_TRUE(train.settings->docker.requirements.has_value());
  EXPECT_TRUE(train.settings->docker.requirements.items().empty());
  EXPECT_EQ(train.settings->docker.environment, (StringMap{{"A", "one"}, {"B", "3"}}));
  EXPECT_EQ(train.settings->docker.parent_image, "python:3.11-slim-bookworm");
}

TEST(PipelineFile, templates_are_parsed_once) {
  const auto pipeline = parse_text(example);
  const auto& parts = pipeline.steps[1].command.arguments[0].parts;
  using Reference = Template::Reference;
  ASSERT_EQ(parts.size(), 6u);
  EXPECT_EQ(std::get<std::string>(parts[0]), "python train.py --data ");
  EXPECT_EQ(std::get<Reference>(parts[1]), (Reference{Template::Placeholder::input, "data"}));
  EXPECT_EQ(std::get<Reference>(parts[3]), (Reference{Template::Placeholder::parameter, "c"}));
  EXPECT_EQ(std::get<std::string>(parts[4]), " $HOME ${x} > ");
}

TEST(PipelineFile, errors_of_a_large_file_show_its_lines) {
  const core::TemporaryFolder folder;
  const auto file = folder.path() / "pipeline.yaml";
  const std::string comments(1 << 20, '#');
  const std::string steps = "name: x\nsteps:\n  a: {command: [cat, '${inputs.b}']}\n";
  core::write_file_atomically(file, steps + comments + "\n");
  try {
    load(file);
    FAIL() << "the step has no input";
  } catch (const core::InputError& error) {
    EXPECT_EQ(error.diagnostics().at(0).span.line, 3u);
    EXPECT_EQ(error.diagnostics().at(0).span.column, 23u);
    EXPECT_THAT(error.what(), HasSubstr("a: {command"));
  }
  core::write_file_atomically(file, "name: x\nsteps:\n  a: {command: [true]}\n" + comments);
  EXPECT_EQ(load(file).steps.size(), 1u);
}

TEST(PipelineFile, dollar_signs_that_open_no_reference_stay) {
  for (const char* text : {"$", "$$", "a$", "$(date)", "$HOME", "$$HOME", "100%$"}) {
    const auto pipeline = parse_text(with_command("['" + std::string(text) + "']"));
    EXPECT_EQ(std::get<std::string>(pipeline.steps[0].command.arguments[0].parts.at(0)), text);
  }
}

TEST(PipelineFile, errors_in_a_quoted_or_folded_command_point_into_it_or_at_it) {
  EXPECT_THAT(file_error(with_command("'ab ${x.y}'")), HasSubstr(":2:26: error"));
  EXPECT_THAT(file_error("name: x\nsteps:\n  a:\n    command: >\n      echo one\n      ${x.y}\n"),
              HasSubstr(":4:14: error"));
  EXPECT_THAT(
      file_error("name: x\nsteps:\n  a:\n    command: |\n      echo one\n      \xc3\xa4 ${x.y}\n"),
      HasSubstr(":6:10: error"));
}

TEST(PipelineFile, options_set_parameters_with_the_declared_type) {
  const auto pipeline =
      parse_text(example, {{{"test_size", "1"}, {"train.seed", "1.50"}, {"train.c", "2"}}});
  EXPECT_EQ(pipeline.parameters.at("test_size"), 1);
  EXPECT_EQ(pipeline.steps[1].parameters.at("seed"), "1.50");  // a text in the file stays a text
  EXPECT_EQ(pipeline.steps[1].parameters.at("c"), 2);
}

std::vector<std::string> parameters_of(const std::string& step) {
  std::vector<std::string> names;
  const auto text =
      "name: x\nparameters: {lr: 0.1, seed: 7, batch-size: 32}\nsteps: {a: " + step + "}\n";
  const auto pipeline = parse_text(text);
  for (const auto& [name, value] : pipeline.steps.at(0).parameters) names.push_back(name);
  return names;
}

TEST(PipelineFile, a_step_has_the_pipelines_parameters_that_it_names) {
  EXPECT_THAT(parameters_of("{command: [x]}"), ElementsAre());
  EXPECT_THAT(parameters_of("{command: [x, \"${params.lr}\"]}"), ElementsAre("lr"));
  EXPECT_THAT(parameters_of("{command: 'x $PIPE_PARAM_SEED $PIPE_PARAM_batch_size'}"),
              ElementsAre("batch-size", "seed"));
  EXPECT_THAT(parameters_of("{command: 'x $PIPE_PARAM_SEEDS'}"), ElementsAre());
  EXPECT_THAT(parameters_of("{command: [x], parameters: [lr, seed]}"), ElementsAre("lr", "seed"));
  EXPECT_THAT(parameters_of("{command: [x], parameters: all}"),
              ElementsAre("batch-size", "lr", "seed"));
  EXPECT_THAT(parameters_of("{command: [x], parameters: {own: 1, seed: }}"),
              ElementsAre("own", "seed"));
  EXPECT_THAT(parameters_of("{command: [x], matrix: {lr: [1]}}"), ElementsAre("lr"));
}

TEST(PipelineFile, parameters_that_the_pipeline_lacks_are_not_taken) {
  const std::string start =
      "name: x\nparameters: {lr: 0.1}\nsteps: {a: {command: [x], parameters: ";
  for (const char* parameters : {"[lrr]", "{lrr: }"}) {
    EXPECT_THAT(file_error(start + parameters + "}}\n"), HasSubstr(":3:"));
    EXPECT_THAT(file_error(start + parameters + "}}\n"), HasSubstr("did you mean 'lr'?"));
  }
  EXPECT_THAT(file_error(start + "some}}\n"), HasSubstr("or `all`"));
  EXPECT_THAT(file_error("name: x\nparameters: [lr]\nsteps: {a: {command: [x]}}\n"),
              HasSubstr("'parameters' must be a map"));
}

TEST(PipelineFile, options_of_another_type_are_refused) {
  const std::string text =
      "name: x\nparameters: {lr: 0.1, fast: true, note: \"1\"}\nsteps: {a: {command: [x]}}\n";
  EXPECT_THAT(file_error(text, {{{"lr", "abc"}}}),
              HasSubstr("'lr' is a number, such as 0.1, not the text 'abc'"));
  EXPECT_THAT(file_error(text, {{{"lr", "true"}}}), HasSubstr("not the boolean true"));
  EXPECT_THAT(file_error(text, {{{"fast", "maybe"}}}),
              HasSubstr("'fast' is true or false, not the text 'maybe'"));
  EXPECT_EQ(parse_text(text, {{{"lr", "1e-3"}, {"fast", "false"}, {"note", "true"}}})
                .parameters.at("note"),
            "true");
}

TEST(PipelineFile, a_shell_is_chosen_for_the_pipeline_or_a_step) {
  const auto pipeline = parse_text(
      "name: x\nshell: bash\nsteps:\n  a: {command: x}\n  b: {command: x, shell: sh}\n  c: "
      "{command: x, shell: [sh, -c]}\n  d: {command: [x]}\n");
  EXPECT_THAT(pipeline.steps[0].command.interpreter,
              ElementsAre("bash", "-e", "-o", "pipefail", "-c"));
  EXPECT_THAT(pipeline.steps[1].command.interpreter, ElementsAre("sh", "-e", "-c"));
  EXPECT_THAT(pipeline.steps[2].command.interpreter, ElementsAre("sh", "-c"));
  EXPECT_THAT(pipeline.steps[3].command.interpreter, ElementsAre());
  EXPECT_THAT(file_error("name: x\nsteps: {a: {command: x, shell: zsh}}\n"),
              HasSubstr("'shell' must be sh or bash, not the text 'zsh'"));
  EXPECT_THAT(file_error("name: x\nsteps: {a: {command: x, shell: []}}\n"),
              HasSubstr("empty list"));
  EXPECT_THAT(file_error("name: x\nsteps: {a: {command: [x], shell: bash}}\n"),
              HasSubstr("its command is a list"));
}

TEST(PipelineFile, unknown_options_are_reported_with_a_suggestion) {
  EXPECT_THAT(file_error(example, {{{"testsize", "1"}}}), HasSubstr("did you mean 'test_size'?"));
  EXPECT_THAT(file_error(example, {{{"c", "1"}}}), HasSubstr("did you mean 'train.c'?"));
  EXPECT_THAT(file_error(example, {{{"train.cc", "1"}}}), HasSubstr("did you mean 'train.c'?"));
}

TEST(PipelineFile, plain_scalars_follow_yaml_1_2) {
  const auto pipeline = parse_text(
      "name: x\nparameters: {a: no, b: true, c: 0o17, d: 0x1F, e: 1e3, f: -5, g: '5', h: 1.10, i: "
      "2024-01-01, j: 1_000, k: \"\"}\nsteps: {s: "
      "{command: [a]}}\n");
  const nlohmann::json expected{{"a", "no"},         {"b", true},    {"c", 15},  {"d", 31},
                                {"e", 1000.0},       {"f", -5},      {"g", "5"}, {"h", 1.1},
                                {"i", "2024-01-01"}, {"j", "1_000"}, {"k", ""}};
  EXPECT_EQ(nlohmann::json(pipeline.parameters), expected);
}

TEST(PipelineFile, a_byte_order_mark_and_windows_line_ends_are_accepted) {
  EXPECT_EQ(
      parse_text("\xEF\xBB\xBFname: x\r\nsteps:\r\n  a:\r\n    command: [a]\r\n").steps[0].line,
      3u);
  EXPECT_THAT(file_error("\xEF\xBB\xBFname: x\r\nstep:\r\n"),
              HasSubstr(":2:1: error: unknown key 'step'"));
}

TEST(PipelineFile, requirements_files_become_lists) {
  const core::TemporaryFolder folder;
  core::write_file_atomically(folder.path() / "requirements.txt",
                              "numpy==1.26.4 # why\n\n# all\n-r more/dev.txt\n--extra-index-url "
                              "https://example.org/simple\nscipy \\\n  >=1.10\n");
  core::make_folders(folder.path() / "more");
  core::write_file_atomically(
      folder.path() / "more/dev.txt",
      "-r ../requirements.txt\n-c pins.txt\npkg @ https://example.org/x.whl#sha256=1\n");
  core::write_file_atomically(folder.path() / "more/pins.txt", "numpy==1.26.4\r\nattrs==23.2\r\n");
  const auto pipeline = parse(
      "name: x\nsettings: {docker: {requirements: requirements.txt}}\nsteps: {a: {command: [a]}}\n",
      folder.path() / "pipeline.yaml");
  const auto lines =
      ElementsAre("numpy==1.26.4", "--constraint numpy==1.26.4", "--constraint attrs==23.2",
                  "pkg @ https://example.org/x.whl#sha256=1",
                  "--extra-index-url https://example.org/simple", "scipy >=1.10");
  EXPECT_THAT(pipeline.steps[0].settings->docker.requirements.items(), lines);
  const auto list = parse(
      "name: x\nsettings: {docker: {requirements: [-r requirements.txt]}}\nsteps: {a: {command: "
      "[a]}}\n",
      folder.path() / "pipeline.yaml");
  EXPECT_THAT(list.steps[0].settings->docker.requirements.items(), lines);
  EXPECT_THAT(list.sources, testing::Contains(folder.path() / "more/pins.txt"));
  EXPECT_THAT(pipeline.sources, testing::UnorderedElementsAre(folder.path() / "requirements.txt",
                                                              folder.path() / "more/dev.txt",
                                                              folder.path() / "more/pins.txt",
                                                              folder.path() / "pipeline.yaml"));
}

TEST(PipelineFile, requirements_files_that_are_missing_or_endless_are_errors) {
  const core::TemporaryFolder folder;
  const auto load = [&](const std::string& name) {
    parse("name: x\nsettings: {docker: {requirements: " + name + "}}\nsteps: {a: {command: [a]}}\n",
          folder.path() / "pipeline.yaml");
  };
  ASSERT_EQ(::mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/zero", folder.path() / "zero");
  for (const auto& name : {std::string("pipe"), std::string("zero"), std::string(300, 'a')})
    EXPECT_THROW(load(name), core::InputError) << name;
  core::write_file_atomically(folder.path() / "sparse", "numpy\n");
  std::filesystem::resize_file(folder.path() / "sparse", std::uintmax_t{3} << 40);
  EXPECT_THROW(load("sparse"), core::EnvironmentError);
}

TEST(PipelineFile, requirements_may_be_files_below_the_folder) {
  const core::TemporaryFolder folder;
  const auto of = [&](const std::string& text) {
    core::write_file_atomically(folder.path() / "requirements.txt", text);
    return parse(
               "name: x\nsettings: {docker: {requirements: requirements.txt}}\nsteps: {a: "
               "{command: [a]}}\n",
               folder.path() / "pipeline.yaml")
        .steps[0]
        .settings->docker.requirements.items();
  };
  EXPECT_THAT(
      of("./w/x.whl\n-e lib\n--editable=./lib[all]\n-e .\n--constraint numpy<2\n"),
      ElementsAre("./w/x.whl", "-e ./lib", "-e ./lib[all]", "-e ./", "--constraint numpy<2"));
  for (const auto* line : {"../x", "/x.whl", "-e ..", "x @ file:///x.whl"})
    EXPECT_THROW(of(line), core::InputError) << line;
}

TEST(PipelineFile, an_input_with_a_slash_is_a_path) {
  const core::TemporaryFolder folder;
  core::make_folders(folder.path() / "data.d");
  core::write_file_atomically(folder.path() / "data.d/a.csv", "");
  const auto read = [&](const std::string& input) {
    return parse("name: x\nsteps:\n  a: {command: x, inputs: {i: " + input + "}}\n",
                 folder.path() / "pipeline.yaml");
  };
  EXPECT_EQ(read("data.d/a.csv").steps[0].inputs[0].data->path, folder.path() / "data.d/a.csv");
  core::write_file_atomically(folder.path() / "b.csv", "");
  try {
    read("b.csv");
    ADD_FAILURE();
  } catch (const core::InputError& error) {
    EXPECT_EQ(error.diagnostics()[0].message, "there is no step 'b'");
    EXPECT_EQ(error.diagnostics()[0].suggestion, "for the file of that name write `./b.csv`");
  }
}

TEST(PipelineFile, an_input_with_a_wrong_source_is_one_error) {
  const auto error = file_error(
      "name: a\nsteps:\n  b:\n    command: cat ${inputs.x}\n    inputs: {x: ./nowhere}\n");
  EXPECT_THAT(error, HasSubstr("the data './nowhere' does not exist"));
  EXPECT_THAT(error, testing::Not(HasSubstr("has no input")));
}

TEST(PipelineFile, a_folder_instead_of_a_file_and_a_missing_file_are_reported) {
  const core::TemporaryFolder folder;
  EXPECT_THROW(load(folder.path()), core::InputError);
  EXPECT_THROW(load(folder.path() / "none.yaml"), core::InputError);
}

TEST(PipelineFile, at_most_a_hundred_errors_are_reported) {
  std::string text = "name: x\nsteps:\n";
  for (int i = 0; i < 3000; ++i)
    text += "  s" + std::to_string(i) + ": {command: [a], after: [t" + std::to_string(i) + "]}\n";
  EXPECT_THAT(file_error(text), HasSubstr("and 2900 further errors"));
}

TEST(PipelineFile, order_in_the_file_does_not_matter) {
  EXPECT_EQ(parse_text("name: x\nsteps:\n  b: {command: [b], inputs: {i: a.o}}\n  a: {command: "
                       "[a], outputs: [o]}\n")
                .steps[0]
                .name,
            "b");
}

TEST(Schema, every_key_has_a_description) {
  std::function<void(const nlohmann::json&, const std::string&)> check =
      [&](const nlohmann::json& node, const std::string& where) {
        if (node.is_object() && node.contains("properties")) {
          for (const auto& [key, property] : node["properties"].items())
            EXPECT_TRUE(property.contains("description") || key == "soft" || key == "hard")
                << where << "." << key;
        }
        for (const auto& [key, child] : node.items())
          if (child.is_structured()) check(child, where + "." + key);
      };
  check(schema(), "");
  EXPECT_EQ(schema()["additionalProperties"], false);
  EXPECT_TRUE(
      schema()["$defs"]["step"]["properties"]["settings"]["properties"]["docker"]["properties"]
          .contains("parent_image"));
}

TEST(Schema, accepts_inputs_that_the_reader_accepts) {
  const auto inputs =
      schema()["$defs"]["step"]["properties"]["inputs"]["additionalProperties"]["anyOf"];
  const auto matches = [&](const std::string& text) {
    return std::ranges::any_of(inputs, [&](const nlohmann::json& each) {
      return each.contains("pattern") &&
             std::regex_search(text, std::regex(each["pattern"].get<std::string>()));
    });
  };
  for (const char* text : {"load.data", "train[*].model", "work[file=a/b].made", "d/a", "./corpus",
                           "..", "~/data", "/srv/data", "s3://team/x", "artifact:production@3"})
    EXPECT_TRUE(matches(text)) << text;
  for (const char* text : {"load", "load.", "artifact:", "train[a/b]"})
    EXPECT_FALSE(matches(text)) << text;
}

TEST(PipelineFile, a_file_in_the_place_of_the_results_folder_is_refused_before_the_run) {
  const core::TemporaryFolder folder;
  core::write_file_atomically(folder.path() / "results", "");
  const auto error_at = [&](const std::string& name) {
    return file_error(
        "name: x\nsteps: {a: {command: 'true > ${outputs.o}', outputs: [o], publish_to: " +
        (folder.path() / name).string() + "}}\n");
  };
  EXPECT_THAT(error_at("results"), HasSubstr("the `publish_to` of 'a' is a folder, and " +
                                             folder.path().string() + "/results is a file"));
  EXPECT_EQ(error_at("others"), "no error");
}

TEST(PipelineFile, a_results_folder_that_would_get_nothing_is_refused) {
  const auto error_with = [&](const std::string& outputs) {
    return file_error("name: x\nsteps: {a: {command: 'true > ${outputs.o}', outputs: " + outputs +
                      ", publish_to: /tmp/none}}\n");
  };
  EXPECT_THAT(error_with("{o: {temp: true}}"),
              HasSubstr("the `publish_to` of 'a' gets nothing: all of its outputs are `temp`"));
  EXPECT_EQ(error_with("{o: {temp: true}, p: p}"), "no error");
}

TEST(Schema, accepts_a_number_of_gpus_without_quotes) {
  const auto rooms = schema()["properties"]["settings"]["properties"];
  const auto type = nlohmann::json::array({"string", "number"});
  EXPECT_EQ(rooms["resources"]["properties"]["gpus"]["type"], type);
  EXPECT_EQ(rooms["docker"]["properties"]["user"]["type"], type);
}

}  // namespace
}  // namespace pipeline::spec
