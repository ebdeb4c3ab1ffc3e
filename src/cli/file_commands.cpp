// Commands about the pipeline file, which need no engine: validate, render, export (of a C++
// program's pipeline) and schema.
#include <algorithm>
#include <set>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "core/diagnostic.hpp"
#include "core/joined.hpp"
#include "core/project.hpp"
#include "core/quantity.hpp"
#include "docker/image_plan.hpp"
#include "driver/command_checks.hpp"
#include "driver/manifests.hpp"
#include "driver/session.hpp"
#include "driver/step_errors.hpp"
#include "driver/step_warnings.hpp"
#include "dsl/declaration.hpp"
#include "dsl/document.hpp"
#include "engine/graph/selection.hpp"
#include "gpu/step_checks.hpp"
#include "orchestrators/nodes.hpp"
#include "spec/code_resolver.hpp"
#include "spec/pipeline_file.hpp"
#include "spec/yaml_writer.hpp"

namespace pipeline::cli {
namespace {

using nlohmann::json;

/// Reports all errors that show only when files are looked up: patterns of code that match nothing,
/// and missing files of an image.
void check_files(const PipelineSpec& pipeline, spec::CodeResolver& resolver) {
  driver::StepErrors errors;
  const StepSpec* before = nullptr;
  for (const auto& step : pipeline.steps) {
    const bool is_sibling =
        before && before->instance && step.instance && *before->instance->of == *step.instance->of;
    before = &step;
    if (is_sibling) continue;  // The instances of a matrix share all of this.
    errors.collect(step, [&] { resolver.code_of(step); });
    errors.collect(step, [&] { docker::plan_image(step, {.root = pipeline.root}); });
  }
  errors.report(pipeline);
}

/// Returns true for generated lists, such as requirements, whose content is shown; false for
/// scripts.
bool is_list(const docker::ContextFile& file) {
  constexpr Bytes max_shown = 4096;
  return file.kind == docker::ContextFile::Kind::file && file.content && file.bytes <= max_shown &&
         !file.path.ends_with(".sh");
}

enum class ListContent { shown, hidden };

/// Returns the files with their sizes and, if it is shown, the content of generated lists.
std::string listing(const std::vector<docker::ContextFile>& files, const std::string& title,
                    ListContent content) {
  if (files.empty()) return {};
  Bytes total = 0;
  std::string text;
  for (const auto& file : files) {
    total += file.bytes;
    text += "#   " + for_terminal(file.path) + "  " + core::format_bytes(file.bytes) + "\n";
    if (content == ListContent::shown && is_list(file))
      for (const auto line : lines_of(*file.content)) text += "#     " + for_terminal(line) + "\n";
  }
  return title + ": " + counted(files.size(), "file") + ", " + core::format_bytes(total) + "\n" +
         text;
}

std::string text_of(const docker::ImagePlan& plan) {
  std::string text;
  if (plan.parent)
    text += "# first, from the Dockerfile of its own:\n" + text_of(*plan.parent) + "#\n";
  if (!plan.build) return text + "# used as it is: " + plan.parent_image + "\n";
  text += plan.dockerfile;
  if (!text.ends_with('\n')) text += '\n';
  return text + listing(plan.context, "# context", ListContent::shown) +
         listing(plan.host_only, "# only mounted during the build, in no layer",
                 ListContent::hidden);
}

/// Replaces the content of files outside of the project that the settings name: others may have
/// written the pipeline, and must not see the user's files.
void hide_outside(docker::ImagePlan& plan, const StepSpec& step,
                  const std::filesystem::path& root) {
  const auto& settings = step.settings->docker;
  const auto hide = [&](const std::optional<std::string>& name, std::string& text) {
    if (name && core::is_outside_project(root / *name))
      text = "# " + *name + " is outside of the project: its content is not shown\n";
  };
  hide(settings.dockerfile, plan.parent ? plan.parent->dockerfile : plan.dockerfile);
  for (auto& file : plan.context)
    if (file.path == "python/pyproject.toml" && file.content)
      hide(settings.pyproject_path, *file.content);
}

json files_json(const std::vector<docker::ContextFile>& files) {
  json list = json::array();
  for (const auto& file : files)
    list.push_back(
        {{"path", file.path}, {"bytes", file.bytes}, {"generated", file.content.has_value()}});
  return list;
}

json to_json(const docker::ImagePlan& plan) {
  json entry{{"build", plan.build}, {"parent_image", plan.parent_image}};
  if (plan.build) {
    entry["dockerfile"] = plan.dockerfile;
    entry["context"] = files_json(plan.context);
    entry["host_only"] = files_json(plan.host_only);
  }
  if (plan.parent) entry["parent"] = to_json(*plan.parent);
  return entry;
}

/// Returns the steps with nodes; only the first instance of a step with a matrix.
std::vector<const StepSpec*> steps_with_nodes(const std::vector<const StepSpec*>& steps) {
  std::vector<const StepSpec*> found;
  std::set<std::string> matrices;
  for (const auto* step : steps)
    if (step->nodes && (!step->instance || matrices.insert(*step->instance->of).second))
      found.push_back(step);
  return found;
}

}  // namespace

core::ExitCode validate_command(Context& context) {
  const auto pipeline = context.load_pipeline();
  spec::CodeResolver resolver(pipeline);
  check_files(pipeline, resolver);
  std::size_t outputs = 0;
  std::vector<const StepSpec*> steps;
  for (const auto& step : pipeline.steps) {
    outputs += step.outputs.size();
    steps.push_back(&step);
  }
  // The machine that runs the steps is unknown, so only findings that hold everywhere count.
  auto found = gpu::check_steps(steps, {});
  std::ranges::move(driver::check_commands(pipeline, resolver), std::back_inserter(found));
  const auto warnings =
      driver::report_warnings(pipeline, std::move(found), [&](std::string_view text) {
        if (!context.options().json) context.note(std::string(text) + "\n");
      });
  if (context.options().json) {
    json report{{"valid", true},
                {"file", pipeline.file.string()},
                {"pipeline", pipeline.name},
                {"steps", pipeline.steps.size()},
                {"outputs", outputs},
                {"warnings", driver::warnings_json(warnings, pipeline)}};
    for (const auto* step : steps_with_nodes(steps))
      report["nodes"][step->name] = orchestrators::nodes_text(*step);
    context.print_json(report);
  } else {
    context.print((pipeline.file.empty() ? context.options().name : shown_path(pipeline.file)) +
                  ": " + context.paint()(Colour::green, "valid") + ": pipeline " + pipeline.name +
                  ", " + counted(pipeline.steps.size(), "step") + ", " +
                  counted(outputs, "output") + "\n");
    for (const auto* step : steps_with_nodes(steps))
      context.print("  " + step->name + " has " + orchestrators::nodes_text(*step) + "\n");
  }
  return core::ExitCode::ok;
}

core::ExitCode render_command(Context& context) {
  const auto pipeline = context.load_pipeline();
  if (orchestrators::traits_of(context.options().orchestrator).renders_manifests) {
    driver::write_manifests(context, pipeline, [&](std::string_view text) { context.write(text); });
    return core::ExitCode::ok;
  }
  const auto& only = context.options().step;
  const auto wanted =
      only.empty() ? std::vector<std::size_t>{} : engine::steps_called(pipeline, only);

  // Steps with the same image are reported together.
  struct Image {
    json plan;
    std::vector<std::string> steps;
    std::string text;
  };
  std::vector<Image> images;
  driver::StepErrors errors;
  for (std::size_t i = 0; i < (only.empty() ? pipeline.steps.size() : wanted.size()); ++i) {
    const auto& step = pipeline.steps[only.empty() ? i : wanted[i]];
    docker::ImagePlan plan;
    errors.collect(step, [&] {
      plan = docker::plan_image(
          step, {.root = pipeline.root, .template_dir = context.options().template_dir});
    });
    hide_outside(plan, step, pipeline.root);
    auto entry = to_json(plan);
    const auto same = std::ranges::find(images, entry, &Image::plan);
    if (same != images.end()) {
      same->steps.push_back(step.name);
    } else {
      images.push_back({std::move(entry), {step.name}, text_of(plan)});
    }
  }
  errors.report(pipeline);
  json list = json::array();
  std::string text;
  for (auto& image : images) {
    const auto steps = core::joined(image.steps, ", ");
    image.plan["steps"] = image.steps;
    list.push_back(std::move(image.plan));
    text += (text.empty() ? "" : "\n") + context.paint()(Colour::bold, "# image of " + steps) +
            "\n" + image.text;
  }
  if (context.options().json) {
    context.print_json({{"images", list}});
  } else {
    context.print(text);
  }
  return core::ExitCode::ok;
}

core::ExitCode export_command(Context& context) {
  const auto& program = *context.options().program;
  context.load_pipeline();  // Throws the file's errors.
  const auto executable = std::filesystem::read_symlink("/proc/self/exe");
  const auto document = dsl::document_of(program, executable.string());
  if (context.options().json) {
    context.print_json({{"yaml", spec::to_yaml(document.root)}});
  } else {
    context.write(spec::to_yaml(document.root));
  }
  std::vector<std::string> functions, scripts, gathering;
  for (const auto& step : program.steps()) {
    if (step.entry) functions.push_back(step.options.name);
    if (!step.script_file.empty()) scripts.push_back(step.script_file);
    if (std::ranges::any_of(step.arguments, [](const auto& each) {
          return each.slot == detail::Slot::gathered && each.selector.empty();
        }))
      gathering.push_back(step.options.name);
  }
  if (!functions.empty())
    context.note(
        "note: functions of this program: " + core::joined(functions, ", ") +
        "; YAML can only name the program as their command, so they run on its machine (local)");
  if (!scripts.empty())
    context.note(
        "note: this program contains the text of these scripts; put them beside the file: " +
        core::joined(scripts, ", "));
  if (!gathering.empty())
    context.note(
        "note: steps that gather single artifacts, of which YAML can only name the first: " +
        core::joined(gathering, ", "));
  return core::ExitCode::ok;
}

core::ExitCode schema_command(Context& context) {
  context.print_json(spec::schema());
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
