#include "cli/arguments.hpp"

#include <algorithm>
#include <array>

#include <CLI/CLI.hpp>

#include "cli/built_from.hpp"
#include "cli/command_table.hpp"
#include "cli/manual.hpp"
#include "core/diagnostic.hpp"
#include "core/text.hpp"

namespace pipeline::cli {
namespace {

/// Returns true if the command exists in `pipe` itself, or in a C++ program with its own pipeline.
bool is_for(const CommandEntry& command, const Options& start) {
  return command.programs == CommandEntry::Programs::both ||
         (command.programs == CommandEntry::Programs::cpp) == (start.program != nullptr);
}

const CommandEntry* find_command(std::string_view name, const Options& start) {
  const auto found = std::ranges::find_if(command_table(), [&](const CommandEntry& command) {
    return name == command.name && is_for(command, start);
  });
  return found == command_table().end() ? nullptr : &*found;
}

std::vector<std::string> shown_names(const Options& start) {
  std::vector<std::string> names;
  for (const auto& command : command_table())
    if (command.summary && is_for(command, start)) names.emplace_back(command.name);
  return names;
}

/// Replaces `pipe` in texts by the program's own name.
std::string with_own_name(std::string text, const Options& start) {
  return start.program ? core::replaced(std::move(text), "pipe ", start.name + " ") : text;
}

/// Returns the text of `pipe help`.
std::string overview(const Options& start) {
  std::string text =
      start.program
          ? start.name + ": a program with a pipeline\n\n"
          : "pipe: machine-learning pipelines, each step in an environment of its own\n\n";
  text += "Usage: " + start.name + " COMMAND [OPTIONS]\n\nCommands:\n";
  for (const auto& command : command_table()) {
    if (!command.summary || !is_for(command, start)) continue;
    std::string name = command.name;
    name.resize(12, ' ');
    text += "  " + name + command.summary + "\n";
  }
  if (!start.program) text += "\nBegin here:\n  pipe init hello && pipe run hello/pipeline.yaml\n";
  return text + "\n`" + start.name + " COMMAND --help` lists all options and shows examples; `" +
         start.name + " --version` the version" +
         (start.program ? ".\n" : ", `pipe help --man` the manual page.\n") +
         "Environment: PIPE_HOME (state folder), DOCKER_HOST, NO_COLOR.\n";
}

/// Words that users of other programs may try, and the commands that they stand for.
constexpr std::array other_words{
    std::pair{"status", "show"},  std::pair{"ps", "runs"},        std::pair{"ls", "runs"},
    std::pair{"list", "runs"},    std::pair{"history", "runs"},   std::pair{"stop", "cancel"},
    std::pair{"kill", "cancel"},  std::pair{"rerun", "resume"},   std::pair{"restart", "resume"},
    std::pair{"retry", "resume"}, std::pair{"start", "run"},      std::pair{"exec", "shell"},
    std::pair{"submit", "run"},   std::pair{"rm", "clean"},       std::pair{"delete", "clean"},
    std::pair{"prune", "clean"},  std::pair{"check", "validate"}, std::pair{"lint", "validate"},
    std::pair{"dag", "graph"},    std::pair{"ui", "serve"},       std::pair{"approve", "answer"}};

/// Returns the command that an unknown one probably means: the command of another program's word,
/// the shortest command that begins like the name, or a similar one.
std::string command_hint(const std::string& name, const Options& start) {
  const auto names = shown_names(start);
  for (const auto& [word, command] : other_words)
    if (name == word && std::ranges::count(names, command))
      return "did you mean '" + std::string(command) + "'?";
  const std::string* completed = nullptr;
  for (const auto& each : names)
    if (name.size() > 1 && each.starts_with(name) &&
        (!completed || each.size() < completed->size()))
      completed = &each;
  if (completed) return "did you mean '" + *completed + "'?";
  const auto hint = core::did_you_mean(name, names);
  return hint.empty() ? "`" + start.name + " help` lists the commands" : hint;
}

[[noreturn]] void refuse_command(const std::string& name, const Options& start) {
  throw core::InputError(
      (name.starts_with('-') ? "unknown option '" : "unknown command '") + name + "'",
      command_hint(name, start));
}

std::unique_ptr<CLI::App> make_app(const CommandEntry& command, Options& options) {
  auto app = std::make_unique<CLI::App>(command.summary ? command.summary : "",
                                        options.name + " " + command.name);
  // parse_arguments() reports extra arguments, with the option that was probably meant.
  app->allow_extras();
  app->footer(with_own_name(command.more, options));
  app->get_formatter()->column_width(30);
  app->get_formatter()->label("REQUIRED", "");
  command.add_options(*app, options);
  return app;
}

[[noreturn]] void refuse_argument(const CLI::App& app, const std::string& argument) {
  const std::string help = "`" + app.get_name() + " --help` lists the options";
  if (!argument.starts_with('-'))
    throw core::InputError("unexpected argument '" + argument + "'", help);
  std::vector<std::string> names;
  for (const auto* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
    for (const auto& name : option->get_snames()) names.push_back("-" + name);
  }
  const std::string given = argument.substr(0, argument.find('='));
  const auto hint = core::did_you_mean(given, names);
  throw core::InputError("unknown option '" + given + "' of `" + app.get_name() + "`",
                         hint.empty() ? help : hint);
}

/// Throws InputError for an empty value, as `--copy "$DEST"` gives with an unset variable: commands
/// would do the same as without the option.
void refuse_empty_values(const CLI::App& app) {
  constexpr std::array<std::string_view, 4> may_be_empty{"--profile", "--note", "TEXT", "COMMAND"};
  for (const auto* option : app.get_options()) {
    const auto name = option->get_name();
    // The value of `--upgrade [NAME]` may be left out, which is an empty text, too.
    if (option->get_expected_min() == 0 || std::ranges::count(may_be_empty, name)) continue;
    for (const auto& value : option->results())
      if (value.empty())
        throw core::InputError("the value of " + name + " is empty",
                               "a variable in the command line may be unset");
  }
}

}  // namespace

ParsedCommand parse_arguments(const std::vector<std::string>& arguments, const Options& start) {
  if (arguments.empty() || arguments[0] == "-h" || arguments[0] == "--help")
    return {.options = {}, .text = overview(start)};
  if (arguments[0] == "--version" || arguments[0] == "-V")
    return {.options = {}, .text = std::string(built_from)};
  const bool wants_help = arguments[0] == "help";
  if (wants_help && arguments.size() == 1) return {.options = {}, .text = overview(start)};
  if (wants_help && arguments[1] == "--man" && !start.program)
    return {.options = {}, .text = manual_page([](const CommandEntry& command) {
                             Options options;
                             return make_app(command, options)->help();
                           })};
  const std::string& name = arguments[wants_help ? 1 : 0];
  const auto* command = find_command(name, start);
  if (!command) refuse_command(name, start);

  ParsedCommand parsed{.command = command->run, .options = start, .text = {}};
  const auto app = make_app(*command, parsed.options);
  if (wants_help) return {.options = {}, .text = app->help()};
  // CLI11 expects the arguments in reverse order.
  std::vector<std::string> rest(arguments.rbegin(), arguments.rend() - 1);
  try {
    app->parse(std::move(rest));
  } catch (const CLI::CallForHelp&) {
    return {.options = {}, .text = app->help()};
  } catch (const CLI::ParseError& error) {
    throw core::InputError(error.what(), "`" + app->get_name() + " --help` shows its usage");
  }
  auto unknown = app->remaining();
  std::erase(unknown, "--");  // The words after it are arguments, such as those of a command.
  if (!unknown.empty()) refuse_argument(*app, unknown.front());
  refuse_empty_values(*app);
  for (const auto* option : app->get_options())
    if (option->count() > 0 && !option->get_lnames().empty())
      parsed.options.given.insert("--" + option->get_lnames().front());
  parsed.options.takes_profile = app->get_option_no_throw("--profile") != nullptr;
  parsed.options.takes_file = app->get_option_no_throw("FILE") != nullptr;
  return parsed;
}

}  // namespace pipeline::cli
