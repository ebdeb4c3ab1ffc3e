// `pipe completion`, and `pipe __complete`, which its scripts call.
#include "cli/commands.hpp"
#include "cli/completion_scripts.hpp"
#include "cli/context.hpp"
#include "core/identifier.hpp"
#include "spec/profile_file.hpp"

namespace pipeline::cli {
namespace {

/// Returns the line of a candidate; an empty text for a name that a shell would not take as it is.
/// Only a state folder that somebody else has made can contain such a name.
std::string candidate(const std::string& name) {
  return core::shell_quote(name) == name ? name + "\n" : "";
}

}  // namespace

core::ExitCode completion_command(Context& context) {
  const auto& shell = context.options().completion.shell;
  const auto commands = completed_commands();
  context.print(shell == "bash"  ? bash_completion(commands)
                : shell == "zsh" ? zsh_completion(commands)
                                 : fish_completion(commands));
  return core::ExitCode::ok;
}

/// Prints candidates for the completion scripts while the user types: identifiers of runs, the
/// steps and artifacts of one, the steps of a file, profiles. Ignores every error.
core::ExitCode complete_command(Context& context) {
  const auto& options = context.options();
  try {
    if (options.completion.kind == "profiles") {
      for (const auto& [name, profile] : spec::find_profiles(std::filesystem::current_path()))
        context.print(candidate(name));
      return core::ExitCode::ok;
    }
    const auto state = context.existing_state();
    if (!state) return core::ExitCode::ok;
    auto& store = context.store(*state);
    if (options.completion.kind == "runs") {
      std::string names = "latest\n";
      for (const auto& run : store.runs().list(/*limit=*/50)) names += candidate(run.id);
      context.print(names);
      return core::ExitCode::ok;
    }
    const auto run = store.runs().find(options.run);
    if (!run) return core::ExitCode::ok;
    for (const auto& step : store.runs().steps(run->id)) {
      context.print(candidate(step.name));
      if (options.completion.kind == "artifacts")
        for (const auto& output : step.outputs)
          context.print(candidate(step.name + "." + output.name));
    }
  } catch (const std::exception&) {
  }
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
