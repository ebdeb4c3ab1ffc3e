#include <gtest/gtest.h>

#include <cctype>
#include <map>
#include <set>
#include <sstream>

#include "cli/arguments.hpp"
#include "cli/commands.hpp"
#include "cli/completion_scripts.hpp"
#include "core/diagnostic.hpp"

namespace pipeline::cli {
namespace {

using Words = std::vector<std::string>;

std::string error_of(const Words& words) {
  try {
    parse_arguments(words);
  } catch (const core::InputError& error) {
    std::string text;
    for (const auto& diagnostic : error.diagnostics())
      text += diagnostic.message + " | " + diagnostic.suggestion;
    return text;
  }
  return "none";
}

TEST(Arguments, version_names_the_program_first) {
  EXPECT_TRUE(parse_arguments({"--version"}).text.starts_with("pipe " PIPELINE_VERSION));
  EXPECT_EQ(parse_arguments({"-V"}).text, parse_arguments({"--version"}).text);
}

TEST(Arguments, manual_page_has_each_command_and_its_text_is_escaped_for_roff) {
  const auto page = parse_arguments({"help", "--man"}).text;
  for (const char* command : {"run", "validate", "clean", "completion"})
    EXPECT_NE(page.find(std::string(".SS pipe ") + command + "\n"), std::string::npos) << command;
  EXPECT_EQ(page.find("__"), std::string::npos) << "a hidden command is in the page";
  EXPECT_NE(page.find("\\-\\-no\\-cache"), std::string::npos);
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);)
    EXPECT_FALSE(line.starts_with("'")) << line << " would be a request";
}

TEST(Arguments, run_takes_all_its_options) {
  const auto invocation =
      parse_arguments({"run", "digits.yaml", "--orchestrator", "local", "--param", "c=1.5", "-p",
                       "train.k=a=b", "--step", "train", "--jobs", "3", "--no-cache", "--state",
                       "/s", "--output", "json", "--execution-mode", "fail_fast"});
  const auto& options = invocation.options;
  EXPECT_TRUE(invocation.command == run_command);
  EXPECT_EQ(options.file, "digits.yaml");
  EXPECT_EQ(options.orchestrator, "local");
  EXPECT_EQ(options.parameters,
            (std::map<std::string, std::string>{{"c", "1.5"}, {"train.k", "a=b"}}));
  EXPECT_EQ(options.step, "train");
  EXPECT_EQ(options.jobs, 3u);
  EXPECT_TRUE(options.no_cache);
  EXPECT_EQ(options.state, "/s");
  EXPECT_TRUE(options.json);
  EXPECT_EQ(options.execution_mode, "fail_fast");
}

TEST(Arguments, options_have_their_defaults) {
  const auto options = parse_arguments({"run"}).options;
  EXPECT_EQ(options.file, "pipeline.yaml");
  EXPECT_EQ(options.orchestrator, "docker");
  EXPECT_EQ(options.jobs, 0u);
  EXPECT_FALSE(options.json);
  EXPECT_EQ(parse_arguments({"show"}).options.run, "latest");
}

TEST(Arguments, an_empty_value_is_not_the_same_as_none) {
  for (const auto& [words, name] :
       {std::pair{Words{"run", "--step", ""}, "--step"},
        std::pair{Words{"run", "-s", ""}, "--step"},
        std::pair{Words{"plan", "--until", ""}, "--step"}, std::pair{Words{"run", ""}, "FILE"},
        std::pair{Words{"cancel", ""}, "RUN"}, std::pair{Words{"logs", "latest", ""}, "STEP"},
        std::pair{Words{"artifacts", "latest", "train.model", "--copy", ""}, "--copy"},
        std::pair{Words{"runs", "--tag", ""}, "--tag"}})
    EXPECT_EQ(error_of(words), std::string("the value of ") + name +
                                   " is empty | a variable in the command line may be unset");
  for (const auto& words :
       {Words{"run", "--profile", ""}, Words{"note", "latest", ""}, Words{"lock", "--upgrade"},
        Words{"shell", "latest", "train", "--", "printf", ""}})
    EXPECT_EQ(error_of(words), "none") << words.front();
}

TEST(Arguments, a_run_may_be_detached) {
  const auto options =
      parse_arguments({"run", "-o", "kubernetes", "--detach", "--service-account", "runner"})
          .options;
  EXPECT_TRUE(options.detach);
  EXPECT_EQ(options.service_account, "runner");
  EXPECT_EQ(parse_arguments({"run"}).options.service_account, "pipe");
  EXPECT_EQ(parse_arguments({"help"}).text.find("__drive"), std::string::npos);
}

TEST(Arguments, options_may_stand_before_the_file_and_a_parameter_does_not_take_it_as_value) {
  EXPECT_EQ(parse_arguments({"run", "-p", "a=1", "other.yaml"}).options.file, "other.yaml");
  EXPECT_EQ(parse_arguments({"run", "--param=a=1", "-p", "b=2", "-o", "local", "other.yaml"})
                .options.parameters.size(),
            2u);
  EXPECT_EQ(parse_arguments({"run", "-p", "a=", "-p", "b=-1"}).options.parameters,
            (std::map<std::string, std::string>{{"a", ""}, {"b", "-1"}}));
  EXPECT_EQ(parse_arguments({"run", "-p", "list=[1, 2]"}).options.parameters.at("list"), "[1, 2]");
}

TEST(Arguments, an_unknown_command_or_option_names_the_likely_one) {
  EXPECT_EQ(error_of({"rnu"}), "unknown command 'rnu' | did you mean 'run'?");
  EXPECT_EQ(error_of({"valdate"}), "unknown command 'valdate' | did you mean 'validate'?");
  EXPECT_EQ(error_of({"frobnicate"}),
            "unknown command 'frobnicate' | `pipe help` lists the commands");
  EXPECT_EQ(error_of({"--verbose"}), "unknown option '--verbose' | `pipe help` lists the commands");
  EXPECT_EQ(error_of({"run", "--jbos", "2"}),
            "unknown option '--jbos' of `pipe run` | did you mean '--jobs'?");
  EXPECT_EQ(error_of({"run", "--orchestratr=local"}),
            "unknown option '--orchestratr' of `pipe run` | did you mean '--orchestrator'?");
  EXPECT_EQ(error_of({"help", "rum"}), "unknown command 'rum' | did you mean 'run'?");
  EXPECT_EQ(error_of({"__complet"}).find("__complete"), std::string::npos)
      << "a hidden command is not suggested";
}

TEST(Arguments, profiles_are_listed_for_a_file_and_without_parameters) {
  EXPECT_EQ(parse_arguments({"profiles", "digits.yaml"}).options.file, "digits.yaml");
  EXPECT_NE(error_of({"profiles", "-p", "c=1"}), "none");
}

TEST(Arguments, wrong_values_say_what_is_allowed) {
  EXPECT_NE(error_of({"run", "-o", "mainframe"}).find("docker"), std::string::npos);
  EXPECT_NE(error_of({"run", "--jobs", "many"}).find("--jobs"), std::string::npos);
  EXPECT_NE(error_of({"run", "--jobs", "0"}).find("--jobs"), std::string::npos);
  EXPECT_NE(error_of({"run", "--jobs", "-1"}).find("--jobs"), std::string::npos);
  EXPECT_NE(error_of({"run", "--output", "xml"}).find("json"), std::string::npos);
  EXPECT_EQ(error_of({"run", "--param", "nothing"}),
            "--param nothing: expected NAME=VALUE | write --param NAME=VALUE");
  EXPECT_NE(error_of({"logs"}).find("RUN"), std::string::npos);
  EXPECT_EQ(error_of({"show", "latest", "step", "more"}),
            "unexpected argument 'more' | `pipe show --help` lists the options");
}

TEST(Arguments, each_command_has_its_own_help) {
  for (const Words& words : {Words{}, Words{"help"}, Words{"-h"}, Words{"--help"}})
    EXPECT_NE(parse_arguments(words).text.find("Usage: pipe COMMAND"), std::string::npos);
  for (const Words& words :
       {Words{"help", "run"}, Words{"run", "-h"}, Words{"run", "file", "--help"}}) {
    const auto text = parse_arguments(words).text;
    EXPECT_NE(text.find("--no-cache"), std::string::npos);
    EXPECT_NE(text.find("Examples:"), std::string::npos);
  }
  EXPECT_EQ(parse_arguments({"--help"}).text.find("__complete"), std::string::npos);
}

/// Returns the `--option`s that a help text lists.
std::set<std::string> options_in(const std::string& help) {
  std::set<std::string> options;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  -")) continue;
    for (auto at = line.find("--"); at != line.npos && at < 30; at = line.find("--", at + 2)) {
      const auto end = line.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", at + 2);
      options.insert(line.substr(at, end - at));
    }
  }
  return options;
}

/// Returns the lines of a script; a line that ends with `\` has the next one in it.
Words lines_in(std::string_view script) {
  Words lines(1);
  std::istringstream text{std::string(script)};
  for (std::string line; std::getline(text, line);) {
    const bool goes_on = line.ends_with('\\');
    if (goes_on) line.pop_back();
    lines.back() += line;
    if (!goes_on) lines.emplace_back();
  }
  return lines;
}

/// Returns true if the word is in the text, and is no part of a longer one.
bool has_word(const std::string& text, const std::string& word) {
  const auto is_part = [&](std::size_t i) {
    return std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '-' || text[i] == '_';
  };
  for (auto at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const auto end = at + word.size();
    if ((at == 0 || !is_part(at - 1)) && (end == text.size() || !is_part(end))) return true;
  }
  return false;
}

/// Returns the command's branch of a `case`, which begins with `    NAME)`, from `before` on.
std::string branch_of(const std::string& command, std::string_view script, const char* before) {
  for (const auto& line : lines_in(script)) {
    const auto end = line.find(before);
    if (line.size() > 4 && line.starts_with("    ") && line[4] != ' ' && end != line.npos &&
        has_word(line.substr(0, end), command))
      return line.substr(end);
  }
  return {};
}

std::string fish_lines_of(const std::string& command, std::string_view script) {
  constexpr std::string_view condition = "__fish_seen_subcommand_from ";
  std::string lines;
  for (const auto& line : lines_in(script)) {
    const auto at = line.find(condition);
    if (at == line.npos || line.find("not " + std::string(condition)) != line.npos) continue;
    const auto begin = at + condition.size();
    if (has_word(line.substr(begin, line.find('"', begin) - begin), command)) lines += line + "\n";
  }
  return lines;
}

TEST(Completion, knows_every_command_and_option) {
  const auto known = completed_commands();
  const std::string bash_script = bash_completion(known), zsh_script = zsh_completion(known),
                    fish_script = fish_completion(known);
  std::istringstream lines(parse_arguments({"help"}).text);
  int commands = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  ") || line.starts_with("  pipe")) continue;
    const auto name = line.substr(2, line.find(' ', 2) - 2);
    ++commands;
    for (const auto script : {&bash_script, &zsh_script, &fish_script})
      EXPECT_NE(script->find(name), script->npos) << name;
    const auto bash = branch_of(name, bash_script, ") words=\""),
               zsh = branch_of(name, zsh_script, ") _"), fish = fish_lines_of(name, fish_script);
    for (const auto& option : options_in(parse_arguments({"help", name}).text)) {
      if (option == "--help") continue;
      EXPECT_TRUE(has_word(bash, option)) << name << " " << option << ": " << bash;
      EXPECT_TRUE(has_word(zsh, option)) << name << " " << option << ": " << zsh;
      EXPECT_TRUE(has_word(fish, "-l " + option.substr(2))) << name << " " << option << ":\n"
                                                            << fish;
    }
  }
  EXPECT_EQ(commands, 39);
}

}  // namespace
}  // namespace pipeline::cli
