#include "spec/notebook_reader.hpp"

#include <algorithm>
#include <utility>

#include "core/notebook.hpp"
#include "spec/matrix.hpp"
#include "templates/templates.hpp"

namespace pipeline::spec {
namespace {

namespace fs = std::filesystem;

constexpr const char* executed_notebook = "notebook";  // An output.
constexpr const char* notebook_program = "__pipe__/notebook.py";

/// Adds the executed notebook to the outputs, unless the step names it itself.
void add_executed(ReadStep& step, settings::Diagnostics& diagnostics) {
  auto& outputs = step.spec.outputs;
  if (std::ranges::find(outputs, executed_notebook, &OutputSpec::name) != outputs.end()) return;
  const auto file = fs::path(*step.notebook).filename().string();
  if (std::ranges::find(outputs, file, &OutputSpec::file_name) != outputs.end())
    settings::report(diagnostics, "duplicate-file",
                     "two outputs would be the file '" + file +
                         "': the executed notebook is the output '" + executed_notebook + "'",
                     step.body->find("outputs")->span, {},
                     "give it another name: `outputs: {notebook: executed.ipynb}`");
  outputs.push_back({executed_notebook, file});
}

}  // namespace

void read_notebook(ReadStep& step, const fs::path& folder, settings::Diagnostics& diagnostics) {
  StepSpec& spec = step.spec;
  const auto& value = *step.body->find("notebook");
  for (const auto* key : {"command", "shell"})
    if (const auto* other = step.body->find(key))
      settings::report(
          diagnostics, "contradiction",
          "step '" + spec.name + "' has a notebook, which is its command, and a '" + key + "'",
          other->span, {}, std::string("remove '") + key + "' or 'notebook'");
  if (!core::is_notebook(*step.notebook))
    settings::report(
        diagnostics, "wrong-type",
        "'" + *step.notebook + "' is not a Jupyter notebook, whose name ends with .ipynb",
        value.span, {},
        step.notebook->ends_with(".py") ? "did you mean `command: python " + *step.notebook + "`?"
                                        : "");
  else if (std::error_code error; fs::exists(folder / *step.notebook, error) &&
                                  !core::notebook_code(folder / *step.notebook))
    settings::report(diagnostics, "wrong-type",
                     "'" + *step.notebook + "' is not a Jupyter notebook of version 4", value.span,
                     {"it is JSON with a list of `cells`"},
                     "open it in Jupyter, and save it again");
  add_executed(step, diagnostics);
  spec.files[notebook_program] = templates::template_text("notebook.py", {});
  if (!*spec.code) return;
  auto code = (*spec.code).items();
  code.push_back(*step.notebook);
  spec.code->emplace(std::move(code));
}

void add_notebook_command(ReadStep& step) {
  using enum Template::Placeholder;
  auto& arguments = step.spec.command.arguments;
  const auto add_word = [&](std::string text) {
    arguments.emplace_back().parts.emplace_back(std::move(text));
  };
  const auto add_value = [&](Template::Placeholder kind, const std::string& name,
                             const char* mark) {
    add_word(name + mark);
    arguments.back().parts.emplace_back(Template::Reference{kind, name});
  };
  for (const auto* word : {"python", notebook_program}) add_word(word);
  add_word(*step.notebook);
  arguments.emplace_back().parts.emplace_back(Template::Reference{output, executed_notebook});
  std::set<std::string> parameters;
  if (step.own_parameters) parameters = *step.own_parameters;
  for (auto& axis : axes_of(step)) parameters.insert(std::move(axis));
  for (const auto& name : parameters) add_value(parameter, name, "=");
  for (const auto& each : step.spec.inputs) add_value(input, each.name, ":");
  for (const auto& each : step.spec.outputs)
    if (each.name != executed_notebook) add_value(output, each.name, ":");
}

}  // namespace pipeline::spec
