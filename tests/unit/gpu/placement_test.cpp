#include "gpu/placement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/placement_terms.hpp"

namespace pipeline::gpu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const HostAttributes host_of_rack{{"ecs.instance-type", "g5.xlarge"},
                                  {"ecs.os-type", "linux"},
                                  {"ecs.cpu-architecture", "x86_64"},
                                  {"rack", "a1"},
                                  {"gpus", "10"}};

Placement parsed(const std::string& text) {
  auto result = parse_placement(text);
  if (const auto* error = std::get_if<PlacementError>(&result)) {
    ADD_FAILURE() << text << ": " << error->message;
    return {};
  }
  return std::get<Placement>(std::move(result));
}
bool holds(const std::string& text) { return unsatisfied(parsed(text), host_of_rack).empty(); }

TEST(Placement, each_operator_has_its_meaning) {
  for (const char* text :
       {"attribute:ecs.instance-type == g5.xlarge", "attribute:ecs.instance-type != p2.xlarge",
        "attribute:gpus > 9", "attribute:gpus >= 10", "attribute:gpus < 10.5",
        "attribute:gpus <= 10", "attribute:gpus != 10.0", "attribute:rack exists",
        "attribute:shelf not_exists", "attribute:ecs.instance-type !in [p2.xlarge]",
        "attribute:shelf !exists", "attribute:ecs.instance-type in [g4dn.xlarge, g5.xlarge]",
        "attribute:ecs.instance-type not_in [p2.xlarge]", "attribute:ecs.instance-type =~ g5.*",
        "attribute:ecs.instance-type matches \"g(4dn|5)\\..*\"",
        "attribute:ecs.instance-type !~ p.*", "attribute:ecs.instance-type not_matches p.*",
        "attribute:rack == \"a1\"", "attribute:rack == 'a1'"})
    EXPECT_TRUE(holds(text)) << text;
  for (const char* text :
       {"attribute:ecs.instance-type == p2.xlarge", "attribute:gpus > 10", "attribute:rack !exists",
        "attribute:shelf exists", "attribute:ecs.instance-type in [p2.xlarge]",
        "attribute:ecs.instance-type =~ 5", "attribute:ecs.instance-type !~ g5.*",
        "attribute:shelf == a", "attribute:shelf > 1", "attribute:shelf =~ .*",
        "attribute:gpus not_in [9, 10]", "attribute:gpus !in [9, 10]", "attribute:gpus == 10.0",
        "attribute:rack not_exists"})
    EXPECT_FALSE(holds(text)) << text;
}

TEST(Placement, a_missing_attribute_is_unequal_to_everything) {
  for (const char* text : {"attribute:shelf != a", "attribute:shelf not_in [a]",
                           "attribute:shelf !~ a", "not (attribute:shelf == a)"})
    EXPECT_TRUE(holds(text)) << text;
}

TEST(Placement, and_binds_closer_than_or_and_not_closest) {
  EXPECT_TRUE(holds("attribute:rack == a1 or attribute:rack == a2 and attribute:gpus == 3"));
  EXPECT_FALSE(holds("(attribute:rack == a1 or attribute:rack == a2) and attribute:gpus == 3"));
  EXPECT_TRUE(holds("not attribute:rack == b and attribute:gpus == 10"));
  EXPECT_TRUE(holds("!(attribute:rack == b) && (attribute:gpus == 3 || attribute:gpus == 10)"));
  EXPECT_TRUE(holds("NOT attribute:rack == b AND attribute:gpus == 10"));
  EXPECT_TRUE(holds("((((attribute:rack==a1))))"));
}

TEST(Placement, unsatisfied_conditions_are_reported_with_the_hosts_values) {
  EXPECT_THAT(
      unsatisfied(parsed("attribute:ecs.os-type == linux and (attribute:ecs.instance-type == "
                         "p2.xlarge or attribute:shelf exists)"),
                  host_of_rack),
      ElementsAre(
          "`attribute:ecs.instance-type == p2.xlarge`: ecs.instance-type is 'g5.xlarge' here",
          "`attribute:shelf exists`: this host has no attribute 'shelf'"));
  EXPECT_THAT(
      unsatisfied(parsed("not (attribute:rack == a1 and attribute:gpus > 3)"), host_of_rack),
      ElementsAre("`not (attribute:rack == a1 and attribute:gpus > 3)`: rack is 'a1' here, "
                  "gpus is '10' here"));
}

TEST(Placement, errors_have_a_place_and_a_fix) {
  struct Row {
    std::string text;
    std::size_t offset;
    std::string message, suggestion;
  };
  const std::vector<Row> rows{
      {"", 0, "the expression is empty", ""},
      {"   ", 0, "the expression is empty", ""},
      {"attribute:a = b", 12, "'=' is not an operator", "did you mean `==`?"},
      {"attribute:a == b & attribute:c exists", 17, "'&' is not an operator", "did you mean `&&`?"},
      {"attribute:a == b attribute:c exists", 17,
       "`and`, `or` or the end expected, not 'attribute:c'", ""},
      {"attribute:a ==", 14, "a value expected, not the end", ""},
      {"attribute:a exist", 12, "an operator (==", "did you mean 'exists'?"},
      {"attribute:a in g5", 15, "a list in brackets expected, not 'g5'", "as in"},
      {"attribute:a in [a, b", 20, "`,` or `]` expected, not the end", ""},
      {"(attribute:a exists", 0, "a `(` without its `)`", ""},
      {"attribute:a exists)", 18, "a `)` without its `(`", ""},
      {"ecs.instance-type == a", 0, "'ecs.instance-type' is not a subject",
       "did you mean `attribute:ecs.instance-type`?"},
      {"atribute:a == b", 0, "'atribute:a' is not a subject", "did you mean `attribute:a`?"},
      {"task:group == x", 0, "is about a cluster's agents and tasks", "use `attribute:NAME`"},
      {"attribute: == x", 10, "an attribute's name expected", ""},
      {"attribute:a == 'b", 15, "a quote that does not end", ""},
      {"attribute:a =~ \"[\"", 16, "the pattern is wrong: a `[` without its `]`", ""},
      {"attribute:a =~ g(4|5)", 15, "a pattern with brackets or `|` has to stand in quotes", ""},
      {"attribute:a == [b]", 15, "a value expected, not '['", "a list needs `in`"},
      {"not", 3, "an attribute, as in `attribute:ecs.instance-type` expected, not the end", ""},
      {std::string(200, '('), 51, "nested too deeply", ""},
      {std::string(5000, 'a'), 4000, "longer than 4000", ""},
  };
  for (const Row& row : rows) {
    const auto result = parse_placement(row.text);
    const auto* error = std::get_if<PlacementError>(&result);
    ASSERT_TRUE(error) << row.text;
    EXPECT_EQ(error->offset, row.offset) << row.text << ": " << error->message;
    EXPECT_THAT(error->message, HasSubstr(row.message)) << row.text;
    EXPECT_THAT(error->suggestion, HasSubstr(row.suggestion)) << row.text;
  }
}

std::string terms(const std::string& text) {
  const auto result = node_selector_terms(parsed(text));
  if (const auto* error = std::get_if<std::string>(&result)) return "error: " + *error;
  std::string all;
  for (const NodeTerm& term : std::get<std::vector<NodeTerm>>(result)) {
    if (!all.empty()) all += " | ";
    for (const auto& requirement : term) {
      all += (&requirement == term.data() ? "" : " & ") + requirement.key + " " + requirement.op;
      for (const auto& value : requirement.values) all += " " + value;
    }
  }
  return all;
}

TEST(Placement, becomes_terms_of_a_node_affinity) {
  EXPECT_EQ(terms("attribute:ecs.instance-type == g5.xlarge"),
            "node.kubernetes.io/instance-type In g5.xlarge");
  EXPECT_EQ(terms("attribute:ecs.cpu-architecture == x86_64 and attribute:rack in [a, b]"),
            "kubernetes.io/arch In amd64 & rack In a b");
  EXPECT_EQ(terms("(attribute:a exists or attribute:b !exists) and attribute:n >= 3"),
            "a Exists & n Gt 2 | b DoesNotExist & n Gt 2");
  EXPECT_EQ(terms("not (attribute:a == 1 or attribute:b in [x])"), "a NotIn 1 & b NotIn x");
  EXPECT_EQ(terms("not (attribute:a == 1 and attribute:b < 4)"),
            "a NotIn 1 | b Gt 3 | b DoesNotExist");
  EXPECT_THAT(terms("attribute:a =~ g.*"), HasSubstr("a node affinity has no patterns"));
  EXPECT_THAT(terms("attribute:a > b"), HasSubstr("compares whole numbers only"));
  std::string many;
  for (int i = 0; i < 7; ++i)
    many += (i ? " and " : "") + std::string("(attribute:a == 1 or attribute:b == 2)");
  EXPECT_THAT(terms(many), HasSubstr("more than 64"));
}

bool matches(const std::string& pattern, const std::string& text) {
  const auto compiled = Pattern::compile(pattern);
  if (const auto* error = std::get_if<TextError>(&compiled)) {
    ADD_FAILURE() << pattern << ": " << error->message;
    return false;
  }
  return std::get<Pattern>(compiled).matches(text);
}

TEST(Pattern, describes_whole_texts) {
  for (const auto& [pattern, text] :
       std::vector<std::pair<std::string, std::string>>{{"", ""},
                                                        {"a", "a"},
                                                        {"a*", ""},
                                                        {"a*", "aaa"},
                                                        {"a+", "a"},
                                                        {"ab?c", "ac"},
                                                        {"ab?c", "abc"},
                                                        {"a|b|", ""},
                                                        {"(a|b)+c", "abac"},
                                                        {"[a-c]{2,3}", "abc"},
                                                        {"[^a-c]", "d"},
                                                        {"[]a]", "]"},
                                                        {"[a-]", "-"},
                                                        {"[\\.-z]", "a"},
                                                        {"[+-\\]]", "A"},
                                                        {"[\\w-.]", "-"},
                                                        {"\\d+\\.\\w", "12.x"},
                                                        {"^g5\\..*$", "g5.x"},
                                                        {".{3}", "abc"},
                                                        {"(?:a)+?", "aa"},
                                                        {"a{2,}", "aaaa"},
                                                        {"\\S\\s", "a "},
                                                        {"(a{2}){2}", "aaaa"},
                                                        {"a{0}", ""},
                                                        {"a{,2}", "aa"}})
    EXPECT_TRUE(matches(pattern, text)) << pattern << " " << text;
  for (const auto& [pattern, text] :
       std::vector<std::pair<std::string, std::string>>{{"", "a"},
                                                        {"a", "aa"},
                                                        {"a+", ""},
                                                        {"[a-c]{2,3}", "a"},
                                                        {"[a-c]{2,3}", "abca"},
                                                        {"a^b", "ab"},
                                                        {"\\d", "a"},
                                                        {"[+-\\]]", "d"},
                                                        {"a{2}", "aaa"},
                                                        {"g5", "g5.x"}})
    EXPECT_FALSE(matches(pattern, text)) << pattern << " " << text;
}

TEST(Pattern, errors_have_a_place) {
  for (const auto& [pattern, offset] :
       std::vector<std::pair<std::string, std::size_t>>{{"a(", 1},
                                                        {"a)", 1},
                                                        {"[a", 0},
                                                        {"*", 0},
                                                        {"a|*", 2},
                                                        {"a\\", 2},
                                                        {"a{2", 1},
                                                        {"a{3,2}", 1},
                                                        {"a{999}", 1},
                                                        {"\\1", 0},
                                                        {"[z-a]", 1},
                                                        {"[+-\\d]", 1},
                                                        {"[a-z&&[^t]]", 4},
                                                        {"[[a]]", 1},
                                                        {"(?=a)", 2},
                                                        {"a{}", 1}}) {
    const auto compiled = Pattern::compile(pattern);
    const auto* error = std::get_if<TextError>(&compiled);
    ASSERT_TRUE(error) << pattern;
    EXPECT_EQ(error->offset, offset) << pattern << ": " << error->message;
  }
}

TEST(Pattern, is_matched_in_bounded_time) {
  EXPECT_FALSE(matches("(a*)*(a*)*(a*)*b", std::string(5000, 'a')));  // years with backtracking
  EXPECT_FALSE(matches("(a|a)*(a|aa)+$", std::string(5000, 'a') + "b"));
  for (const std::string pattern :
       {"(a{255}){255}", "(){255}{255}{255}{255}", "((((a{9}){9}){9}){9}){9}"})
    EXPECT_TRUE(std::holds_alternative<TextError>(Pattern::compile(pattern))) << pattern;
  EXPECT_TRUE(std::holds_alternative<TextError>(Pattern::compile(std::string(1001, 'a'))));
}

TEST(Placement, values_of_which_an_attribute_needs_one_are_found) {
  const auto demanded = [](std::string_view text) {
    return demanded_values(std::get<Placement>(parse_placement(text)), "t");
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(demanded("attribute:t == a"), (Texts{"a"}));
  EXPECT_EQ(demanded("attribute:t in [a, b]"), (Texts{"a", "b"}));
  EXPECT_EQ(demanded("attribute:rack == r and attribute:t == a"), (Texts{"a"}));
  EXPECT_EQ(demanded("attribute:t == a or attribute:t == b"), (Texts{"a", "b"}));
  for (const char* open : {"attribute:t != a", "attribute:t =~ a.*", "not attribute:t == a",
                           "attribute:t == a or attribute:rack == r", "attribute:u == a"})
    EXPECT_EQ(demanded(open), Texts{}) << open;
}

TEST(Placement, a_pattern_demands_those_of_the_known_values_that_it_matches) {
  const std::vector<std::string_view> known{"a1", "a2", "b"};
  const auto demanded = [&](std::string_view text) {
    return demanded_values(std::get<Placement>(parse_placement(text)), "t", known);
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(demanded("attribute:t =~ a.*"), (Texts{"a1", "a2"}));
  EXPECT_EQ(demanded("attribute:t =~ a.* or attribute:t == c"), (Texts{"a1", "a2", "c"}));
  EXPECT_EQ(demanded("attribute:t =~ x.* or attribute:t == c"), Texts{})
      << "the pattern may match other values than the known ones";
  EXPECT_EQ(demanded("attribute:t !~ a.*"), Texts{});
}

}  // namespace
}  // namespace pipeline::gpu
