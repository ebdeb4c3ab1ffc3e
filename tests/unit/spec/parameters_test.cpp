// Parameters that are lists and maps: how they are read, set by options, and looked into.
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/diagnostic.hpp"
#include "core/file.hpp"
#include "spec/parameters_file.hpp"
#include "spec/pipeline_file.hpp"

namespace pipeline::spec {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view head =
    "name: x\nparameters: {names: [a, 'b c', 3], opt: {lr: 0.1, layers: [8, 16], on: true}}\n";

PipelineSpec read(const std::string& steps,
                  const std::map<std::string, std::string>& options = {}) {
  return parse(std::string(head) + "steps: {" + steps + "}\n", "/tmp/pipeline.yaml",
               {.parameters = options});
}

/// Returns the first error as `LINE:COLUMN: message`.
std::string first_error(const std::string& steps,
                        const std::map<std::string, std::string>& options = {}) {
  try {
    read(steps, options);
  } catch (const core::InputError& error) {
    const auto& first = error.diagnostics().front();
    return std::to_string(first.span.line) + ":" + std::to_string(first.span.column) + ": " +
           first.message + (first.suggestion.empty() ? "" : " | " + first.suggestion);
  }
  return "none";
}

json names_with(const std::string& option) {
  return *read("a: {command: x}", {{"names", option}}).parameters.at("names");
}

TEST(Parameters, are_lists_and_maps_of_values) {
  const auto pipeline =
      read("a: {command: [x, '${params.names}'], parameters: {own: [[1], null]}}");
  EXPECT_EQ(*pipeline.parameters.at("opt"), json({{"lr", 0.1}, {"layers", {8, 16}}, {"on", true}}));
  EXPECT_EQ(*pipeline.steps[0].parameters.at("names"), json({"a", "b c", 3}));
  EXPECT_EQ(*pipeline.steps[0].parameters.at("own"), json::parse("[[1], null]"));
  EXPECT_FALSE(pipeline.steps[0].parameters.contains("opt"))
      << "a step has only the parameters that it names";
}

TEST(Parameters, wrong_values_are_reported_at_their_own_position) {
  EXPECT_THAT(first_error("a: {command: x, parameters: {own: [1, {deep: 1e999}]}}"),
              HasSubstr("3:54: the number 1e999 is more than"));
  EXPECT_THAT(first_error("a: {command: x, parameters: {own: [\"\\u0001\"]}}"),
              HasSubstr("3:44: parameter 'own' has a control character"));
  const std::string long_text(70'000, 'x');
  EXPECT_THAT(first_error("a: {command: x, parameters: {own: [" + long_text + "]}}"),
              HasSubstr("3:43: 'own' has 70004 bytes as JSON, and a list or map at most 65536"));
}

TEST(Parameters, a_command_can_name_members_of_lists_and_maps) {
  const auto pipeline = read("a: {command: [x, '${params.opt.layers.1}', '${params.names.0}']}");
  EXPECT_TRUE(pipeline.steps[0].parameters.contains("opt"));
  EXPECT_TRUE(pipeline.steps[0].parameters.contains("names"));
  EXPECT_EQ(first_error("a: {command: [x, '${params.opt.layer}']}"),
            "3:27: 'opt' has no member 'layer' | did you mean 'layers'?");
  EXPECT_EQ(first_error("a: {command: [x, '${params.names.3}']}"),
            "3:27: 'names' has no item '3': it is a list with 3, counted from 0");
  EXPECT_EQ(first_error("a: {command: [x, '${params.opt.lr.x}']}"),
            "3:27: 'opt.lr' has no member 'x': it is one value, not a list or map");
  EXPECT_THAT(first_error("a: {matrix: {i: ['{\"n\": 1}', x]}, command: [x, '${params.i.n}']}"),
              HasSubstr("'i' has no member 'n': a list or map among the items of a matrix is its "
                        "JSON, in one text | "));
}

TEST(Parameters, options_set_lists_maps_and_their_members) {
  EXPECT_EQ(names_with("[z, 1.5, {k: v}]"), json({"z", 1.5, {{"k", "v"}}}));
  EXPECT_EQ(names_with(R"(["z", "1"])"), json({"z", "1"}));
  const auto pipeline = read("a: {command: x, parameters: {own: {n: 1}}}",
                             {{"opt.lr", "0.5"}, {"opt.layers.0", "9"}, {"a.own.n", "2"}});
  EXPECT_EQ(*pipeline.parameters.at("opt"), json({{"lr", 0.5}, {"layers", {9, 16}}, {"on", true}}));
  EXPECT_EQ(*pipeline.steps[0].parameters.at("own"), json({{"n", 2}}));
}

TEST(Parameters, options_have_literal_dollars_at_any_place) {
  const auto pipeline =
      read("a: {command: x, parameters: {own: text}}", {{"a.own", "$${a} and $${b}, 5 $"}});
  EXPECT_EQ(*pipeline.steps[0].parameters.at("own"), "${a} and ${b}, 5 $");
  for (const auto* text : {"${a}", "$${a} and ${b}"})
    EXPECT_THAT(first_error("a: {command: x, parameters: {own: text}}", {{"a.own", text}}),
                HasSubstr("nothing fills `${...}` in a parameter"))
        << text;
}

TEST(Parameters, a_literal_placeholder_of_a_parameter_stays_one_in_settings) {
  const auto pipeline = read(
      "a: {command: x, settings: {docker: {labels: {one: '$${params.x}', two: '$${params.x} "
      "$${y}'}}}}");
  const auto& labels = pipeline.steps[0].settings->docker.labels;
  EXPECT_EQ(labels.at("one"), "${params.x}");
  EXPECT_EQ(labels.at("two"), "${params.x} ${y}");
}

TEST(Parameters, are_filled_in_behind_a_literal_placeholder) {
  const auto pipeline = read(
      "a: {command: x, publish_to: '/tmp/$${params.names}-${params.opt.lr}-${params.opt.on}'}");
  EXPECT_EQ(*pipeline.steps[0].publish_to, "/tmp/${params.names}-0.1-true");
}

TEST(Parameters, options_keep_the_type) {
  const auto with = [](const std::string& name, const std::string& text) {
    return first_error("a: {command: x}", {{name, text}});
  };
  EXPECT_THAT(with("names", "z"),
              HasSubstr(R"('names' is a list, such as ["a","b c",3], not the text 'z')"));
  EXPECT_THAT(with("names", "{a: 1}"), HasSubstr("'names' is a list, such as"));
  EXPECT_THAT(with("opt", "[1]"), HasSubstr("'opt' is a map, such as"));
  EXPECT_THAT(with("opt.lr", "high"), HasSubstr("'opt.lr' is a number, such as 0.1"));
  EXPECT_THAT(with("opt.l", "1"), HasSubstr("--param opt.l: 'opt' has no member 'l'"));
  EXPECT_THAT(with("optt.lr", "1"), HasSubstr("did you mean 'opt'?"));
}

TEST(Parameters, a_file_that_is_empty_or_a_folder_is_reported_as_what_it_is) {
  const core::TemporaryFolder folder;
  const auto error = [](const std::filesystem::path& file) -> std::string {
    try {
      load_parameters(file);
    } catch (const core::InputError& found) {
      return found.what();
    }
    return "none";
  };
  core::write_file_atomically(folder.path() / "none.yaml", "");
  EXPECT_THAT(error(folder.path() / "none.yaml"), HasSubstr("the file is empty"));
  EXPECT_THAT(error(folder.path() / "none.yaml"), testing::Not(HasSubstr("pipe init")));
  EXPECT_THAT(error(folder.path()), HasSubstr("is a folder, not a file"));
}

TEST(Parameters, a_file_sets_maps_and_the_parameters_of_steps) {
  const core::TemporaryFolder folder;
  const auto from = [&](const std::string& text) {
    core::write_file_atomically(folder.path() / "few.yaml", text);
    return load_parameters(folder.path() / "few.yaml").values;
  };
  const auto pipeline = read("a: {command: x, parameters: {text: '1', list: [1]}}",
                             from("opt: {lr: 7}\nnames: []\na: {text: 007, list: [2, 3]}\n"));
  EXPECT_EQ(*pipeline.parameters.at("opt"), json({{"lr", 7}}))
      << "the file replaces the map as a whole";
  EXPECT_EQ(*pipeline.parameters.at("names"), json::array());
  EXPECT_EQ(*pipeline.steps[0].parameters.at("text"), "007");
  EXPECT_EQ(*pipeline.steps[0].parameters.at("list"), json({2, 3}));
  auto options = from("a: {text: x, list: [5]}\n");
  options["a.text"] = "y";
  const auto other = read("a: {command: x, parameters: {text: '1', list: [1]}}", options);
  EXPECT_EQ(*other.steps[0].parameters.at("text"), "y") << "a single option takes precedence";
  EXPECT_EQ(*other.steps[0].parameters.at("list"), json({5}));
}

TEST(Parameters, an_error_in_a_file_of_parameters_names_the_place_there) {
  const core::TemporaryFolder folder;
  const auto file = folder.path() / "few.yaml";
  core::write_file_atomically(file, "n: abc\nm: 1\na:\n  text: x\n  tex: y\n");
  const auto given = load_parameters(file);
  EXPECT_EQ(given.places.at("m"), file.string() + ":2:1");
  const auto wrong = [&](const std::map<std::string, std::string>& options) -> std::string {
    try {
      parse("name: x\nparameters: {n: 1}\nsteps: {a: {command: x, parameters: {text: t}}}\n",
            "/tmp/pipeline.yaml", {.parameters = options, .parameter_places = given.places});
    } catch (const core::InputError& error) {
      return error.what();
    }
    return "no error";
  };
  const auto all = wrong(given.values);
  EXPECT_THAT(all, HasSubstr("few.yaml:1:1: n=abc: 'n' is a number"));
  EXPECT_THAT(all, HasSubstr("few.yaml:2:1: m: there is no such parameter"));
  EXPECT_THAT(all, HasSubstr("few.yaml:3:1: a.tex: there is no such parameter"));
  EXPECT_THAT(wrong({{"a.text", "z"}, {"other", "1"}}), HasSubstr("--param other: there is no"));
}

/// Returns the texts that a step's parameters keep of their numbers, as `NAME/PATH=TEXT`.
std::string written(const StepSpec& step) {
  std::string all;
  for (const auto& [name, value] : step.parameters)
    if (value.written)
      for (const auto& [path, text] : *value.written) all += name + "/" + path + "=" + text + " ";
  return all;
}

TEST(Parameters, numbers_keep_the_text_that_was_written) {
  const auto steps = [](const std::map<std::string, std::string>& options) {
    return parse(
               "name: x\nparameters: {python: 3.10, sha: 1234567e2, zip: 01234, lr: 1e-3, n: 5, "
               "opt: {on: True, layers: [0.50, 0x1F, 2]}}\nsteps: {a: {command: 'echo "
               "${params.python} ${params.sha} ${params.zip} ${params.lr} ${params.n} "
               "${params.opt}'}}\n",
               "/tmp/pipeline.yaml", {.parameters = options})
        .steps;
  };
  const auto read = steps({});
  EXPECT_EQ(
      written(read[0]),
      "lr/=1e-3 opt/layers.0=0.50 opt/layers.1=0x1F opt/on=True python/=3.10 sha/=1234567e2 ");
  EXPECT_EQ(*read[0].parameters.at("python"), json(3.1)) << "conditions and records have numbers";
  EXPECT_EQ(*read[0].parameters.at("zip"), json("01234"));
  const auto given = steps({{"python", "3.20"}, {"sha", "7"}, {"opt.layers", "[1.0, 2.00]"}});
  EXPECT_EQ(written(given[0]), "lr/=1e-3 opt/layers.1=2.00 opt/on=True python/=3.20 ");
}

TEST(Parameters, the_values_of_a_matrix_keep_their_text) {
  const auto pipeline = parse(
      "name: x\nparameters: {n: [1.10, 2]}\nsteps: {a: {matrix: {python: [3.9, 3.10], fold: "
      "[01, 02]}, command: x}, b: {matrix: {v: '${params.n[*]}'}, command: x}, "
      "c: {command: x, after: ['a[python=3.10,fold=01]']}}\n",
      "/tmp/pipeline.yaml", {});
  EXPECT_EQ(pipeline.steps[2].name, "a.python-3.10.fold-01");
  EXPECT_EQ(written(pipeline.steps[2]), "python/=3.10 ");
  EXPECT_EQ(written(pipeline.steps[4]), "v/=1.10 ");
  EXPECT_THAT(pipeline.steps.back().after, ElementsAre("a.python-3.10.fold-01"));
}

TEST(Parameters, a_file_of_parameters_may_be_a_pipe) {
  int ends[2] = {};
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "lr: 0.5\n", 8), 8);
  ::close(ends[1]);
  EXPECT_EQ(load_parameters("/dev/fd/" + std::to_string(ends[0])).values.at("lr"), "0.5");
  ::close(ends[0]);
  EXPECT_THROW(load_parameters("/dev"), core::InputError);
  EXPECT_THROW(load_parameters("/nowhere/few.yaml"), core::InputError);
}

TEST(Parameters, a_matrix_takes_the_items_of_a_list) {
  const auto pipeline = read(
      "a: {command: [x, '${params.name}'], matrix: {name: '${params.names[*]}'}}, "
      "b: {command: x, matrix: {size: '${params.opt.layers[*]}', c: [1, 2]}}");
  std::vector<std::string> names;
  for (const auto& step : pipeline.steps) names.push_back(step.name);
  EXPECT_THAT(names, ElementsAre("a.name-a", testing::StartsWith("a.name-b_c-"), "a.name-3",
                                 "b.size-8.c-1", "b.size-8.c-2", "b.size-16.c-1", "b.size-16.c-2"));
  EXPECT_FALSE(pipeline.steps[0].parameters.contains("names"))
      << "another item of the list must not change the key of this one";
  const auto own = read("a: {command: x, parameters: {l: [1]}, matrix: {c: '${params.l[*]}'}}",
                        {{"a.l", "[5, 6]"}});
  EXPECT_EQ(own.steps.size(), 2u) << "options come before the matrix";
}

TEST(Parameters, a_value_that_is_not_a_list_is_refused_for_a_matrix) {
  const auto with = [](const std::string& text, const std::string& list = "[1]") {
    return first_error("a: {command: x, parameters: {l: " + list + "}, matrix: {c: '" + text +
                       "'}}");
  };
  EXPECT_THAT(with("${params.opt[*]}"), HasSubstr("`${params.opt[*]}` is a map, not a list"));
  EXPECT_THAT(with("${params.l[*]}", "[]"), HasSubstr("has no items, so step 'a' would not run"));
  EXPECT_THAT(with("${params.l[*]}", "[1, 1]"), HasSubstr("has the item 1 twice"));
  EXPECT_THAT(with("${params.l[*]}", "[null]"), HasSubstr("is null"));
  EXPECT_EQ(with("${params.nmes[*]}"),
            "3:59: the step has no parameter 'nmes' | did you mean 'names'?");
}

TEST(Parameters, a_list_of_the_pipelines_parameters_has_only_names) {
  EXPECT_EQ(first_error("a: {command: x, parameters: [names, {opt: 1}]}"),
            "3:45: each of 'parameters' must be the name of a parameter of the pipeline, "
            "not a map");
}

TEST(Parameters, a_condition_can_name_members_of_lists_and_maps) {
  const auto pipeline =
      read("a: {command: x, when: \"${params.opt.lr} < 1 and ${params.names.0} == 'a'\"}");
  EXPECT_EQ(*pipeline.steps[0].when->parameters.at("params.opt.lr"), 0.1);
  EXPECT_THAT(first_error("a: {command: x, when: '${params.names} == 1'}"),
              HasSubstr("is a list, not a number, a text, true or false | name one of its items: "
                        "`${params.names.0}`"));
  EXPECT_THAT(first_error("a: {command: x, when: '${params.opt.layer.0} == 1'}"),
              HasSubstr("'opt' has no member 'layer' | did you mean 'layers'?"));
}

}  // namespace
}  // namespace pipeline::spec
