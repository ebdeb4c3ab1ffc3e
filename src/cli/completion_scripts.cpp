#include "cli/completion_scripts.hpp"

#include <map>

#include "core/joined.hpp"
#include "core/text.hpp"

namespace pipeline::cli {
namespace {

using Commands = std::vector<CompletedCommand>;

std::string names_of(const Commands& commands) {
  std::string names;
  for (const auto& command : commands) names += command.name + " ";
  return names + "help";
}

// In bash, an action is a call of a function that sets COMPREPLY. `compgen -W` would expand the
// words, and run what is in `$()` of them.

constexpr std::string_view bash_beginning = R"SH(# bash completion for pipe
_pipe_words() {
  local word all
  read -rd '' -a all <<<"$1"
  COMPREPLY=()
  for word in "${all[@]}"; do [[ $word != "$cur"* ]] || COMPREPLY+=("$word"); done
}
_pipe_list() { _pipe_words "$(pipe __complete "$@" 2>/dev/null)"; }
_pipe_files() { COMPREPLY=($(compgen -f -- "$cur")); }
_pipe_folders() { COMPREPLY=($(compgen -d -- "$cur")); }
_pipe_pipelines() { COMPREPLY=($(compgen -f -X '!*.@(yaml|yml|json)' -- "$cur") $(compgen -d -- "$cur")); }
_pipe() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} words=
)SH";

std::string bash_action(const CompletedOption& option) {
  const std::string of_run = option.names.empty() ? " \"${COMP_WORDS[2]}\"" : "";
  switch (option.candidates) {
    case Candidates::none: return ":";
    case Candidates::words: return "_pipe_words \"" + core::joined(option.words, " ") + "\"";
    case Candidates::files: return "_pipe_files";
    case Candidates::pipelines: return "_pipe_pipelines";
    case Candidates::folders: return "_pipe_folders";
    case Candidates::runs: return "_pipe_list runs";
    case Candidates::steps: return "_pipe_list steps" + of_run;
    case Candidates::artifacts: return "_pipe_list artifacts" + of_run;
    case Candidates::profiles: return "_pipe_list profiles";
  }
  return ":";
}

/// Returns the branches that complete the value of an option.
std::string bash_values(const Commands& commands) {
  // Commands by option and action. The branch of an option that has the same action in all commands
  // does not name the commands.
  std::map<std::string, std::map<std::string, std::vector<std::string>>> actions;
  for (const auto& command : commands)
    for (const auto& option : command.options)
      for (const auto& name : option.names)
        if (!option.value.empty()) actions[name][bash_action(option)].push_back(command.name);
  std::map<std::string, std::vector<std::string>> patterns;  // Keyed by action.
  for (const auto& [name, by_action] : actions)
    for (const auto& [action, users] : by_action)
      if (by_action.size() == 1)
        patterns[action].push_back("*' " + name + "'");
      else
        for (const auto& user : users) patterns[action].push_back("'" + user + " " + name + "'");
  std::string text = "  case \"$command $prev\" in\n";
  for (const auto& [action, list] : patterns)
    text += "    " + core::joined(list, " | ") + ") " + action + "; return ;;\n";
  return text + "  esac\n";
}

/// Returns the branches that complete an argument.
std::string bash_arguments(const Commands& commands) {
  std::map<std::string, std::vector<std::string>> users;  // Keyed by action.
  for (const auto& command : commands) {
    if (command.arguments.empty()) continue;
    std::string action = bash_action(command.arguments[0]);
    if (command.arguments.size() > 1 && command.arguments[1].candidates != Candidates::none)
      action = "if ((COMP_CWORD == 2)); then " + action + "; else " +
               bash_action(command.arguments[1]) + "; fi";
    users[action].push_back(command.name);
  }
  users["_pipe_words \"" + names_of(commands) + "\""].emplace_back("help");
  std::string text = "  case $command in\n";
  for (const auto& [action, names] : users)
    text += "    " + core::joined(names, " | ") + ") " + action + "; return ;;\n";
  return text + "  esac\n";
}

// In zsh, an action is the last part of a specification of _arguments.

constexpr std::string_view zsh_beginning = R"SH(#compdef pipe
# zsh completion for pipe
_pipe_list() { local -a found; found=(${(f)"$(pipe __complete "$@" 2>/dev/null)"}); compadd -a found }
_pipe_runs() { _pipe_list runs }
_pipe_steps() { _pipe_list steps ${words[2]:-latest} }
_pipe_all_steps() { _pipe_list steps }
_pipe_profiles() { _pipe_list profiles }
_pipe_artifacts() { _pipe_list artifacts ${words[2]:-latest} }
_pipe() {
  local -a commands
  commands=(
)SH";

constexpr std::string_view zsh_middle = R"SH(  )
  if ((CURRENT == 2)); then _describe command commands; return; fi
  local command=${words[2]}
  shift words; ((CURRENT--))
  case $command in
)SH";

std::string zsh_action(const CompletedOption& option) {
  switch (option.candidates) {
    case Candidates::none: return " ";
    case Candidates::words: return "(" + core::joined(option.words, " ") + ")";
    case Candidates::files: return "_files";
    case Candidates::pipelines: return "_files -g \"*.(yaml|yml|json)\"";
    case Candidates::folders: return "_files -/";
    case Candidates::runs: return "_pipe_runs";
    case Candidates::steps: return option.names.empty() ? "_pipe_steps" : "_pipe_all_steps";
    case Candidates::artifacts: return "_pipe_artifacts";
    case Candidates::profiles: return "_pipe_profiles";
  }
  return " ";
}

std::string in_quotes(const std::string& text) {
  return "'" + core::replaced(text, "'", "'\\''") + "'";
}

std::string zsh_option(const CompletedOption& option) {
  auto help = core::replaced(option.help, "[", "\\[");
  help = core::replaced(std::move(help), "]", "\\]");
  std::string rest = "[" + help + "]";
  if (!option.value.empty()) rest += ":" + option.value + ":" + zsh_action(option);
  std::string text = option.is_repeatable ? "'*'" : "";
  text += option.names.size() > 1 ? "{" + core::joined(option.names, ",") + "}" : option.names[0];
  return text + in_quotes(rest);
}

std::string zsh_argument(const CompletedOption& argument) {
  return in_quotes((argument.is_repeatable ? "*:" : ":") + core::lower(argument.value) + ":" +
                   zsh_action(argument));
}

// In fish, each line has one option, with the commands in which the option is the same.

std::string fish_quoted(const std::string& text) {
  return "'" + core::replaced(core::replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
}

std::string fish_action(const CompletedOption& option) {
  const auto list = [](const std::string& what) {
    return " -a \"(pipe __complete " + what + " 2>/dev/null)\"";
  };
  switch (option.candidates) {
    case Candidates::none: return "";
    case Candidates::words: return " -a \"" + core::joined(option.words, " ") + "\"";
    case Candidates::files:
    case Candidates::pipelines: return " -F";
    case Candidates::folders: return " -a \"(__fish_complete_directories)\"";
    case Candidates::runs: return list("runs");
    case Candidates::steps: return list("steps");
    case Candidates::artifacts: return list("artifacts");
    case Candidates::profiles: return list("profiles");
  }
  return "";
}

std::string fish_option(const CompletedOption& option) {
  std::string text;
  for (const auto& name : option.names)
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  const auto action = fish_action(option);
  if (!option.value.empty()) text += (action == " -F" ? " -r" : " -x") + action;
  return text + " -d " + fish_quoted(option.help);
}

}  // namespace

std::string bash_completion(const Commands& commands) {
  std::string text(bash_beginning);
  text += "  ((COMP_CWORD == 1)) && { _pipe_words \"" + names_of(commands) +
          " --help --version\"; return; }\n";
  text += bash_values(commands) + "  case $command in\n";
  for (const auto& command : commands) {
    std::string words;
    for (const auto& option : command.options)
      for (const auto& name : option.names)
        if (name.starts_with("--")) words += (words.empty() ? "" : " ") + name;
    text += "    " + command.name + ") words=\"" + words + "\" ;;\n";
  }
  text += "  esac\n  [[ $cur == -* ]] && { _pipe_words \"$words\"; return; }\n";
  return text + bash_arguments(commands) +
         "  _pipe_words \"$words\"\n}\nshopt -s extglob\ncomplete -o filenames -F _pipe pipe\n";
}

std::string zsh_completion(const Commands& commands) {
  std::string text(zsh_beginning);
  for (const auto& command : commands)
    text += "    " + in_quotes(command.name + ":" + command.help) + "\n";
  text += "    'help:Explain a command'\n";
  text += zsh_middle;
  for (const auto& command : commands) {
    text += "    " + command.name + ") _arguments";
    for (const auto& option : command.options) text += " " + zsh_option(option);
    for (const auto& argument : command.arguments) text += " " + zsh_argument(argument);
    text += " ;;\n";
  }
  return text + "    help) _describe command commands ;;\n  esac\n}\n_pipe \"$@\"\n";
}

std::string fish_completion(const Commands& commands) {
  std::map<std::string, std::vector<std::string>> users;  // Keyed by the options of `complete`.
  for (const auto& command : commands) {
    for (const auto& option : command.options) users[fish_option(option)].push_back(command.name);
    for (const auto& argument : command.arguments)
      if (auto action = fish_action(argument); !action.empty())
        users[action].push_back(command.name);
  }
  std::string text = "# fish completion for pipe\nset -l commands " + names_of(commands) +
                     "\ncomplete -c pipe -f\n";
  const std::string at_begin = "complete -c pipe -n \"not __fish_seen_subcommand_from $commands\"";
  for (const auto& command : commands)
    text += at_begin + " -a " + command.name + " -d " + fish_quoted(command.help) + "\n";
  text += at_begin + " -a help -l version -l help\n";
  for (const auto& [options, names] : users)
    text += "complete -c pipe -n \"__fish_seen_subcommand_from " + core::joined(names, " ") + "\"" +
            options + "\n";
  return text + "complete -c pipe -n \"__fish_seen_subcommand_from help\" -a \"$commands\"\n";
}

}  // namespace pipeline::cli
