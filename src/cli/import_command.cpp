// `pipe import`: converts an ECS task definition to a pipeline file.
#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"
#include "spec/pipeline_file.hpp"

namespace pipeline::cli {

core::ExitCode import_command(Context& context) {
  const auto file = context.pipeline_file();
  const auto& target = context.options().copy_to;
  std::vector<std::string> notices;
  std::string text =
      "# Made by `pipe import` of " + core::printable(file.filename().string()) + ".\n";
  const auto yaml = spec::import_task_definition(file, notices);
  for (const auto& notice : notices) text += "# " + core::printable(notice) + "\n";
  text += yaml;
  if (target.empty()) {  // A file that standard output goes to has each character.
    context.out().live ? context.print(text) : context.write(text);
    return core::ExitCode::ok;
  }
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::symlink_status(target, error)))
    throw core::InputError(target.string() + " exists already; nothing was written",
                           "give another file with --out");
  core::write_file_atomically(target, text);
  for (const auto& notice : notices) context.note("note: " + core::printable(notice));
  context.print("wrote " + core::printable(target.string()) + "\nRun it: pipe run " +
                core::shell_quote(shown_path(std::filesystem::absolute(target))) + "\n");
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
