#include "cli/manual.hpp"

#include "cli/command_table.hpp"

namespace pipeline::cli {
namespace {

constexpr std::string_view page_beginning =
    ".TH PIPE 1 \"\" \"pipe " PIPELINE_VERSION
    "\" \"User Commands\"\n"
    ".SH NAME\n"
    "pipe \\- machine-learning pipelines, each step in an environment of its own\n"
    ".SH SYNOPSIS\n"
    ".B pipe\n"
    ".I COMMAND\n"
    "[\\fIOPTIONS\\fR]\n"
    ".SH DESCRIPTION\n"
    ".B pipe\n"
    "reads a pipeline and its steps from a file, builds the image of each step, and runs the steps "
    "in containers, as processes of this machine, as Jobs of a Kubernetes cluster, or as jobs of "
    "Slurm. Steps that have not changed since they last succeeded are reused.\n"
    ".PP\n"
    "Begin with\n"
    ".PP\n"
    ".in +4\n"
    ".EX\n"
    "pipe init hello && pipe run hello/pipeline.yaml\n"
    ".EE\n"
    ".in\n"
    ".SH COMMANDS\n";

constexpr std::string_view page_end =
    ".SH EXIT STATUS\n"
    ".TP\n.B 0\nAll is well.\n"
    ".TP\n.B 1\nA step failed.\n"
    ".TP\n.B 2\nThe input is wrong: the file, an option, a parameter.\n"
    ".TP\n.B 3\nThe environment lacks something: no engine, no disk.\n"
    ".TP\n.B 4\nA build failed.\n"
    ".TP\n.B 130\nThe run was interrupted.\n"
    ".SH ENVIRONMENT\n"
    ".TP\n.B PIPE_HOME\nThe folder of runs and artifacts; by default .pipe beside the pipeline "
    "file.\n"
    ".TP\n.B PIPE_PROFILE\nThe profile to run in.\n"
    ".TP\n.B DOCKER_HOST\nThe container engine's address.\n"
    ".TP\n.B NO_COLOR\nText without colours.\n"
    ".SH FILES\n"
    ".TP\n.I pipeline.yaml\nThe pipeline; the default of each command's FILE.\n"
    ".TP\n.I pipeline.lock\nThe exact packages of the steps' environments.\n"
    ".TP\n.I .pipe/\nThe state folder: records of runs, logs, artifacts.\n"
    ".SH SEE ALSO\n"
    ".BR docker (1),\n"
    ".BR kubectl (1)\n";

/// Returns the text escaped for roff.
std::string roff_text(std::string_view text) {
  std::string result;
  bool at_line_start = true;
  for (const char c : text) {
    if (at_line_start && (c == '.' || c == '\'')) result += "\\&";
    switch (c) {
      case '\\': result += "\\e"; break;
      case '-': result += "\\-"; break;
      case '\'': result += "\\(aq"; break;
      case '`': result += "\\(ga"; break;
      case '^': result += "\\(ha"; break;
      case '~': result += "\\(ti"; break;
      default: result += c;
    }
    at_line_start = c == '\n';
  }
  return result;
}

}  // namespace

std::string manual_page(const std::function<std::string(const CommandEntry&)>& help) {
  std::string page(page_beginning);
  for (const CommandEntry& command : command_table()) {
    if (!command.summary || command.programs == CommandEntry::Programs::cpp) continue;
    page += ".SS pipe " + std::string(command.name) + "\n.EX\n";
    page += roff_text(help(command));
    if (!page.ends_with('\n')) page += '\n';
    page += ".EE\n";
  }
  return page.append(page_end);
}

}  // namespace pipeline::cli
