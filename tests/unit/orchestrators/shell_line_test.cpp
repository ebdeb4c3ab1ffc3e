#include "orchestrators/shell_line.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/identifier.hpp"
#include "core/shell_prelude.hpp"
#include "orchestrators/orchestrator.hpp"
#include "support/attempt_builder.hpp"

namespace pipeline {
using namespace orchestrators;
namespace {

/// Returns the text as the machine's own shell reads it.
std::string output_of_shell(const std::string& line) {
  core::TemporaryFolder folder;
  auto script = "cd " + core::shell_quote(folder.path().string()) + " && sh -c " +
                core::shell_quote(line) + " 2>&1";
  std::string output;
  FILE* pipe = popen(script.c_str(), "r");
  std::array<char, 4096> buffer;
  for (std::size_t got; (got = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    output.append(buffer.data(), got);
  pclose(pipe);
  for (auto& entry : std::filesystem::directory_iterator(folder.path()))
    output += " MADE " + entry.path().filename().string();
  return output;
}

/// `@` in the line stands for the value.
std::string filled(std::string_view line, const std::string& value) {
  ShellLine shell;
  for (std::size_t from = 0;;) {
    auto at = line.find('@', from);
    shell.add_text(line.substr(from, at - from));
    if (at == line.npos) return shell.finish();
    shell.add_value(value);
    from = at + 1;
  }
}

const std::vector<std::string>& nasty_values() {
  static const std::vector<std::string> values = {"plain",
                                                  "two words",
                                                  "",
                                                  "it's",
                                                  "\"quoted\"",
                                                  "$HOME",
                                                  "$(touch made)",
                                                  "`touch made`",
                                                  "a\\b\\\\c",
                                                  "\\",
                                                  "'; touch made; '",
                                                  "\"; touch made; \"",
                                                  "a\nb",
                                                  "\n",
                                                  "-n",
                                                  "*",
                                                  "~",
                                                  "a#b",
                                                  "# c",
                                                  "!x",
                                                  "}",
                                                  "${HOME}",
                                                  ")",
                                                  "EOF",
                                                  "a\nEOF\ntouch made",
                                                  "漢字 é",
                                                  "'\"'\"",
                                                  "\\'",
                                                  "\\\"",
                                                  "&& touch made",
                                                  "> made"};
  return values;
}

TEST(shell_line, value_that_is_not_an_integer_is_refused_in_arithmetic) {
  EXPECT_THROW(filled("echo $((@ + 1))", "a[$(touch made)]"), core::InputError);
  EXPECT_THROW(filled("echo $((@ + 1))", ""), core::InputError);
  EXPECT_EQ(output_of_shell(filled("echo $((@ + 1))", "41")), "42\n");
  EXPECT_EQ(output_of_shell(filled("echo \"$(( (2 + @) * 2 ))\" '@'", "-1")), "2 -1\n");
}

TEST(shell_line, value_that_would_end_a_quoted_here_document_is_refused) {
  EXPECT_THROW(filled("cat <<'EOF'\n@\nEOF\n", "EOF"), core::InputError);
  EXPECT_THROW(filled("cat << \"EOF\"\n@\nEOF\n", "a\nEOF\ntouch made"), core::InputError);
}

TEST(shell_line, value_cannot_be_the_end_mark) {
  EXPECT_THROW(filled("cat <<@\nx\n", "EOF"), core::InputError);
}

TEST(shell_line, every_value_is_printed_unchanged_wherever_it_stands) {
  // Each prints the value between brackets.
  const std::vector<std::string> lines = {
      "printf '[%s]' @",
      "printf '[%s]' '@'",
      "printf '[%s]' \"@\"",
      "printf '[@]' >/dev/null; printf '[%s]' @",
      "printf \"[%s]\" \"`printf %s @`\"",
      "x=@; printf '[%s]' \"$x\"",
      "printf '[%s]' ${nothing:-@}",
      "printf '[%s]' \"${nothing:-@}\"",
      "printf '%s' '['@']'",
      "# it's a comment with @ in it\nprintf '[%s]' @",
      "printf '[%s]' @ # don't",
      "(printf '[%s]' @)",
      "if true; then printf '[%s]' \"@\"; fi",
      "printf '[%s]' \"it's \\\"\" >/dev/null; printf '[%s]' @",
      "printf '[%s]' \\@",
  };
  for (auto& line : lines)
    for (auto& value : nasty_values()) {
      auto expected = "[" + value + "]";
      bool substituted = line.find("$(") != line.npos || line.find('`') != line.npos;
      // $() and `` take line ends off.
      if (substituted && value.ends_with('\n')) continue;
      EXPECT_EQ(output_of_shell(filled(line, value)), expected)
          << line << " with " << value << " becomes " << filled(line, value);
    }
}

TEST(shell_line, every_value_is_printed_unchanged_in_a_here_document) {
  for (auto& value : nasty_values()) {
    EXPECT_EQ(output_of_shell(filled("cat <<EOF\nit's [@] \"\nEOF\nprintf '[%s]' @", value)),
              "it's [" + value + "] \"\n[" + value + "]")
        << value;
    EXPECT_EQ(output_of_shell(filled("cat <<-  EOF | cat\n\t[@]\n\tEOF\nprintf '[%s]' @", value)),
              "[" + value + "]\n[" + value + "]")
        << value;
    if (value.find("EOF") == value.npos) {
      EXPECT_EQ(output_of_shell(filled("cat <<'EOF'\nit's [@] $x\nEOF\n", value)),
                "it's [" + value + "] $x\n")
          << value;
    }
  }
}

TEST(shell_line, number_sign_within_a_word_does_not_begin_a_comment) {
  for (auto& value : nasty_values()) {
    EXPECT_EQ(output_of_shell(filled("printf '%s' $((1))#@", value)), "1#" + value);
    EXPECT_EQ(output_of_shell(filled("printf '%s' a\\ #@", value)), "a #" + value);
  }
}

TEST(shell_line, safe_words_stay_readable) {
  EXPECT_EQ(filled("python train.py --data @", "/a/b.csv"), "python train.py --data /a/b.csv");
}

}  // namespace

namespace test {
namespace {

const Layout layout{.code = "/code", .inputs = "/in", .outputs = "/out", .has_bash = false};

TEST(command, unset_variable_of_the_caller_is_named) {
  AttemptBuilder step(program({"echo"}));
  step.step.command.arguments.push_back(placeholder(Template::Placeholder::environment, "TOKEN"));
  EXPECT_THROW(command_of(step.attempt(), layout), core::EnvironmentError);
}

TEST(command, references_are_filled_in_and_words_stay_words) {
  AttemptBuilder step(program({"run"}));
  auto& arguments = step.step.command.arguments;
  arguments.push_back(text("--data=") + placeholder(Template::Placeholder::input, "data"));
  arguments.push_back(placeholder(Template::Placeholder::output, "model"));
  arguments.push_back(placeholder(Template::Placeholder::parameter, "c"));
  arguments.push_back(placeholder(Template::Placeholder::run_id) + text("/") +
                      placeholder(Template::Placeholder::step_name));
  arguments.push_back(placeholder(Template::Placeholder::environment, "WHO"));
  step.input("data", "table.csv", "").output("model", "model.bin");
  step.step.parameters = {{"c", "a b;c"}};
  step.environment = {{"WHO", "me"}};
  step.run_id = "r1";
  EXPECT_EQ(command_of(step.attempt(), layout),
            (std::vector<std::string>{"run", "--data=/in/data.csv", "/out/model.bin", "a b;c",
                                      "r1/step", "me"}));
}

TEST(command, a_text_is_run_by_the_shell) {
  AttemptBuilder step(shell(text("echo ") + placeholder(Template::Placeholder::parameter, "x")));
  step.step.parameters = {{"x", "it's"}};
  EXPECT_EQ(command_of(step.attempt(), layout),
            (std::vector<std::string>{"sh", "-e", "-c",
                                      std::string(core::sh_prelude) + "echo 'it'\\''s'"}));
  step.step.command.interpreter = {"bash", "-c"};
  EXPECT_EQ(command_of(step.attempt(), layout),
            (std::vector<std::string>{"bash", "-c", "echo 'it'\\''s'"}));
}

TEST(command, script_of_a_shell_in_a_list_takes_values_as_words) {
  const auto value = placeholder(Template::Placeholder::parameter, "x");
  const auto script_of = [&](std::vector<std::string> words) {
    AttemptBuilder step(program(words));
    step.step.command.arguments.push_back(text("echo ") + value);
    step.step.command.arguments.push_back(value);
    step.step.parameters = {{"x", "$(touch made)"}};
    auto command = command_of(step.attempt(), layout);
    EXPECT_EQ(command.back(), "$(touch made)") << "an argument behind the script is a word already";
    return command[command.size() - 2];
  };
  for (const auto& words : std::vector<std::vector<std::string>>{{"sh", "-c"},
                                                                 {"/bin/bash", "-ec"},
                                                                 {"bash", "-eo", "pipefail", "-c"},
                                                                 {"bash", "+o", "posix", "-c"},
                                                                 {"timeout", "9", "dash", "-c"},
                                                                 {"busybox", "sh", "-c"}})
    EXPECT_EQ(script_of(words), "echo '$(touch made)'") << words[0];
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"echo", "-c"}, {"sh", "file.sh", "-c"}, {"python3", "-c"}, {"sh", "-e"}})
    EXPECT_EQ(script_of(words), "echo $(touch made)") << words[0];
}

TEST(command, pipes_are_found_where_the_shell_sees_one) {
  for (const char* line :
       {"a | b", "a|b", "x=$(a | b)", "echo \"$(a | b)\"", "a || b | c", "a |& b", "(a; b) | c"})
    EXPECT_TRUE(has_pipe(shell(line))) << line;
  for (const char* line : {"a", "a || b", "echo 'a | b'", "echo \"a | b\"", "a # | b", "a >| b",
                           "echo a\\|b", "cat <<E\na | b\nE\n", "echo ${x:-a|b}"})
    EXPECT_FALSE(has_pipe(shell(line))) << line;
  EXPECT_FALSE(has_pipe(program({"a", "|", "b"})));
}

int exit_code_of(const std::vector<std::string>& words) {
  std::string line;
  for (const auto& word : words) line += core::shell_quote(word) + " ";
  return WEXITSTATUS(system((line + ">/dev/null 2>&1").c_str()));
}

TEST(command, a_failing_line_fails_the_command) {
  AttemptBuilder lines(shell("false\ntrue")), last(shell("true\nfalse")),
      allowed(shell("false || true\nif false; then :; fi"));
  EXPECT_NE(exit_code_of(command_of(lines.attempt(), layout)), 0);
  EXPECT_NE(exit_code_of(command_of(last.attempt(), layout)), 0);
  EXPECT_EQ(exit_code_of(command_of(allowed.attempt(), layout)), 0);
}

TEST(command, a_failing_part_of_a_pipe_fails_the_command_where_the_shell_supports_it) {
  AttemptBuilder pipe(shell("false | cat")), fine(shell("true | cat"));
  auto words = command_of(pipe.attempt(), layout), others = command_of(fine.attempt(), layout);
  const bool sh_can_tell = exit_code_of({"sh", "-c", "set -o pipefail"}) == 0;
  EXPECT_EQ(exit_code_of(words) != 0, sh_can_tell);
  EXPECT_EQ(exit_code_of(others), 0) << "the command also works where the shell lacks pipefail";
  words[0] = others[0] = "bash";
  EXPECT_NE(exit_code_of(words), 0);
  EXPECT_EQ(exit_code_of(others), 0);
}

TEST(command, bash_runs_a_text_where_it_exists_and_names_the_line_that_fails) {
  const auto said = [](const char* line, std::optional<bool> has_bash) {
    AttemptBuilder step(shell(line));
    auto with_bash = layout;
    with_bash.has_bash = has_bash;
    std::string words;
    for (const auto& word : command_of(step.attempt(), with_bash))
      words += core::shell_quote(word) + " ";
    FILE* output = popen(("{ " + words + "; } 2>&1").c_str(), "r");
    std::string text(4096, ' ');
    text.resize(fread(text.data(), 1, text.size(), output));
    return text + (pclose(output) == 0 ? "succeeded" : "failed");
  };
  for (const auto has_bash : {std::optional(true), std::optional<bool>()}) {
    EXPECT_EQ(said("false | true\necho never", has_bash),
              "pipe: line 1 ended with exit code 1 (parts of the pipe: 1 0): true\nfailed");
    EXPECT_EQ(said("x=1\ntest -f /nonexistent\necho never", has_bash),
              "pipe: line 2 ended with exit code 1: test -f /nonexistent\nfailed");
    EXPECT_EQ(said("f() {\n  false\n}\nf", has_bash).find("pipe: line "), 0u);
    EXPECT_EQ(said("[[ 1 = 1 ]]\nfalse || echo $LINENO", has_bash), "2\nsucceeded");
    EXPECT_EQ(said("set +e\nfalse\ntrue", has_bash), "succeeded");
  }
  EXPECT_EQ(said("false\ntrue", false), "failed");
}

TEST(command, numbers_are_written_as_in_json) {
  AttemptBuilder step(program({"true"}));
  step.step.parameters = {{"text", "5"}, {"yes", true},  {"no", false},  {"count", 100000},
                          {"rate", 0.1}, {"whole", 1.0}, {"small", 1e-5}};
  auto variables = variables_of(step.attempt(), layout);
  EXPECT_EQ(variables["PIPE_PARAM_TEXT"], "5");
  EXPECT_EQ(variables["PIPE_PARAM_YES"], "true");
  EXPECT_EQ(variables["PIPE_PARAM_NO"], "false");
  EXPECT_EQ(variables["PIPE_PARAM_COUNT"], "100000");
  EXPECT_EQ(variables["PIPE_PARAM_RATE"], "0.1");
  EXPECT_EQ(variables["PIPE_PARAM_WHOLE"], "1.0");
  EXPECT_EQ(variables["PIPE_PARAM_SMALL"], "1e-05");
  EXPECT_EQ(variables["PIPE_PARAM_small"], "1e-05");
}

TEST(command, later_variables_win) {
  AttemptBuilder step(program({"true"}));
  step.environment = {
      {"PIPE_RUN_ID", "mine"}, {"A", "environment"}, {"B", "environment"}, {"C", "environment"}};
  step.step.settings->docker.runtime_environment = {{"B", "runtime"}, {"C", "runtime"}};
  step.secrets = {{"C", "secret"}};
  auto variables = variables_of(step.attempt(), layout);
  EXPECT_EQ(variables["PIPE_RUN_ID"], "mine");
  EXPECT_EQ(variables["A"], "environment");
  EXPECT_EQ(variables["B"], "runtime");
  EXPECT_EQ(variables["C"], "secret");
}

TEST(command, python_says_where_it_is_when_a_step_that_can_stall_is_aborted) {
  AttemptBuilder step(program({"true"}));
  EXPECT_FALSE(variables_of(step.attempt(), layout).contains("PYTHONFAULTHANDLER"));
  step.step.stalled_after = Duration(std::chrono::seconds(1));
  EXPECT_EQ(variables_of(step.attempt(), layout)["PYTHONFAULTHANDLER"], "1");
  step.environment = {{"PYTHONFAULTHANDLER", ""}};
  EXPECT_EQ(variables_of(step.attempt(), layout)["PYTHONFAULTHANDLER"], "");
  step.environment = {};
  step.step.settings->docker.environment = {{"PYTHONFAULTHANDLER", "of the image"}};
  EXPECT_FALSE(variables_of(step.attempt(), layout).contains("PYTHONFAULTHANDLER"));
}

}  // namespace
}  // namespace test
}  // namespace pipeline
