#include "dsl/builder.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/digest.hpp"
#include "core/file.hpp"
#include "dsl/declaration.hpp"
#include "dsl/document.hpp"
#include "model/running_program.hpp"
#include "settings/settings.hpp"
#include "spec/pipeline_file.hpp"
#include "spec/yaml_writer.hpp"

namespace pipeline::dsl {
namespace {

namespace fs = std::filesystem;
using detail::Argument;
using detail::Declaration;
using detail::Slot;

/// Returns the running program. The first call must be before `main`, while only the libraries are
/// loaded that the program was started with.
const std::shared_ptr<const Program>& this_program() {
  static const auto program = std::make_shared<const Program>(model::running_program());
  return program;
}
[[maybe_unused]] const bool is_known_before_main = (this_program(), true);

/// Throws the diagnostics as an InputError. The lines of their spans are numbers of steps, which
/// become the positions of the steps' declarations. If these are in several files, the positions
/// become notes.
[[noreturn]] void fail(const Pipeline& pipeline, settings::Diagnostics diagnostics) {
  const auto& steps = pipeline.steps();
  std::set<std::string> files;
  for (const auto& diagnostic : diagnostics)
    if (const auto line = diagnostic.span.line; line > 0 && line <= steps.size())
      files.insert(steps[line - 1].where.file_name());
  std::string file, source;
  if (files.size() == 1) {
    file = *files.begin();
    std::error_code error;
    if (fs::is_regular_file(file, error)) source = core::read_file(file);
  }
  for (auto& diagnostic : diagnostics) {
    const auto line = diagnostic.span.line;
    if (line == 0 || line > steps.size()) {
      diagnostic.span = {};
      continue;
    }
    const auto& where = steps[line - 1].where;
    diagnostic.span = {};
    if (files.size() == 1)
      diagnostic.span = {where.line(), where.column(), 1};
    else
      diagnostic.notes.push_back("the step is declared at " + std::string(where.file_name()) + ":" +
                                 std::to_string(where.line()));
  }
  throw core::InputError(std::move(diagnostics), file, source);
}

/// Reports parameters that the step's function cannot take, before it is called.
/// @param number of the step, from 1
void check_parameters(const StepSpec& spec, const Declaration& step, unsigned number,
                      settings::Diagnostics& diagnostics) {
  for (const auto& argument : step.arguments) {
    if (argument.slot != Slot::parameter || !argument.check || argument.is_axis) continue;
    const auto found = spec.parameters.find(argument.name);
    if (found == spec.parameters.end()) continue;
    const auto& value = *found->second;
    std::string problem;
    try {
      auto decoded = value;
      if (!argument.is_text && value.is_string())
        decoded = core::parse_json(value.get<std::string>());
      if (decoded.is_discarded()) throw JsonError("expected one, found " + value.dump());
      argument.check(decoded);
      continue;
    } catch (const JsonError& error) {
      problem = error.what();
    }
    diagnostics.push_back({"bad-option",
                           "the parameter '" + argument.name + "' of step '" + step.options.name +
                               "' is of type " + argument.type + ": " + problem,
                           core::Span{number, 1, 1},
                           {},
                           {}});
  }
}

/// Adds to the step what the document cannot express: its line, script, program and gathered
/// inputs.
void finish(StepSpec& spec, const Declaration& step) {
  spec.line = step.where.line();
  if (!step.script_file.empty()) spec.files[step.script_file] = step.script;
  if (!step.entry) return;
  spec.program =
      ProgramStep{this_program(), step.signature, step.options.version, address_of(step)};
  // The only parameters of a function are its arguments.
  const auto is_other = [&](const auto& parameter) {
    return std::ranges::find(step.arguments, parameter.first, &Argument::name) ==
           step.arguments.end();
  };
  if (spec.instance)
    for (const auto& axis : spec.instance->axes)
      if (const auto& value = *spec.parameters.find(axis); is_other(value))
        spec.instance->other_values[axis] = value.second;
  std::erase_if(spec.parameters, is_other);
  for (auto& [name, value] : spec.parameters) value.written.reset();  // Arguments are JSON.
  for (const auto& argument : step.arguments) {
    if (argument.slot != Slot::gathered || !argument.selector.empty()) continue;
    const auto input = std::ranges::find(spec.inputs, argument.name, &InputSpec::name);
    if (input == spec.inputs.end()) continue;
    input->sources.clear();
    for (const auto& source : argument.sources)
      input->sources.push_back({source.step, source.output});
    input->gathered = true;
  }
}

}  // namespace

fs::path root_of(const Pipeline& pipeline) {
  const fs::path root = pipeline.options().root;
  return (root.empty() ? fs::current_path() : fs::absolute(root)).lexically_normal();
}

PipelineSpec build(const Pipeline& pipeline, const std::map<std::string, std::string>& parameters,
                   fs::path root) {
  if (root.empty()) root = root_of(pipeline);
  auto document = document_of(pipeline);
  if (std::ranges::find(document.diagnostics, not_utf8, &core::Diagnostic::code) !=
      document.diagnostics.end())
    fail(pipeline, std::move(document.diagnostics));
  PipelineSpec spec;
  try {
    spec = spec::read(document.root, root / "program", {.parameters = parameters});
  } catch (const core::InputError& error) {
    auto all = error.diagnostics();
    all.insert(all.begin(), document.diagnostics.begin(), document.diagnostics.end());
    fail(pipeline, std::move(all));
  }
  spec.sources.erase(std::remove(spec.sources.begin(), spec.sources.end(), spec.file),
                     spec.sources.end());
  spec.file.clear();

  std::set<unsigned> checked;  // Arguments other than axes are the same for all instances.
  std::unordered_map<std::string_view, unsigned> numbers;
  for (unsigned i = 0; i < pipeline.steps().size(); ++i)
    numbers.emplace(pipeline.steps()[i].options.name, i);
  for (auto& step : spec.steps) {
    const auto number = numbers.at(step.instance ? *step.instance->of : step.name);
    const auto& declaration = pipeline.steps()[number];
    finish(step, declaration);
    if (checked.insert(number).second)
      check_parameters(step, declaration, number + 1, document.diagnostics);
  }
  if (!document.diagnostics.empty()) fail(pipeline, std::move(document.diagnostics));
  return spec;
}

std::string identity_of(const Pipeline& pipeline) {
  const auto document = document_of(pipeline);
  core::Hasher hasher;
  hasher.field(spec::to_yaml(document.root)).field(this_program()->executable.string());
  for (const auto& step : pipeline.steps())
    hasher.field(step.options.version).field(address_of(step)).field(step.script);
  return hasher.finish().hex();
}

}  // namespace pipeline::dsl
