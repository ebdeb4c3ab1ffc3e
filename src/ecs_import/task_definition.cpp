#include "ecs_import/task_definition.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/text.hpp"
#include "ecs_import/task_container.hpp"
#include "ecs_import/task_document.hpp"
#include "gpu/concurrent_containers.hpp"
#include "gpu/instance_types.hpp"
#include "gpu/placement.hpp"
#include "model/value_builder.hpp"
#include "settings/decode.hpp"

namespace pipeline::ecs_import {
namespace {

using Kind = core::Value::Kind;

class TaskReader {
 public:
  TaskReader(settings::Diagnostics& diagnostics, settings::Diagnostics& notices)
      : document_(diagnostics, notices) {}
  core::Value read(const core::Value& task);

 private:
  void read_volumes(const core::Value& task);
  void read_limits(const core::Value& task);
  bool read_essential(const std::vector<const core::Value*>& containers);
  void read_settings(const core::Value& task, core::Value& pipeline);
  void read_placement(const core::Value& task, core::Value& pipeline);
  void check_gpus(const core::Value& pipeline);

  TaskDocument document_;
  TaskContext context_;
  std::string family_;
};

/// Fills TaskContext::volumes.
void TaskReader::read_volumes(const core::Value& task) {
  // For example `efsVolumeConfiguration`, which names a service of AWS.
  const auto is_of_service = [](const auto& member) {
    return member.first.scalar.find("olumeConfiguration") != std::string::npos &&
           member.first.scalar != "dockerVolumeConfiguration" && !is_blank(member.second);
  };
  for (const core::Value* volume : document_.maps("volumes", task)) {
    document_.check_keys(*volume, volume_keys, "a volume");
    const auto name = document_.text("name", *volume);
    if (!name) continue;
    std::string source;
    const core::Value* host = document_.map_at("host", *volume);
    if (host) document_.check_keys(*host, host_keys, "'host'");
    const core::Value* path = host ? given(*host, "sourcePath") : nullptr;
    if (path && !is_blank(*path)) {
      source =
          settings::read_text("sourcePath", *path, settings::formats::path, document_.diagnostics())
              .value_or("");
    } else if (std::ranges::none_of(volume->members, is_of_service)) {
      source = family_ + "-" + *name;
      document_.report_unsupported("the volume '" + *name + "' is docker's volume '" + source +
                                       "' here, which stays when the task has ended",
                                   volume->span);
    }
    if (!context_.volumes.emplace(*name, source).second)
      document_.report_error("there are two volumes '" + *name + "'", volume->span);
  }
}

/// Reads the limits of all containers together: `cpu`, such as `1024` or `"1 vCPU"`, and `memory`,
/// such as `2048` or `"2 GB"`.
void TaskReader::read_limits(const core::Value& task) {
  const auto read = [&](const char* key, std::string_view unit, double factor,
                        const char* expected) -> std::optional<double> {
    const core::Value* value = given(task, key);
    if (!value || is_blank(*value)) return std::nullopt;
    double number = 0;
    const auto& digits = value->scalar;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    std::string rest;
    for (const char c :
         std::string_view(end, static_cast<std::size_t>(digits.data() + digits.size() - end)))
      if (c != ' ') rest += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    constexpr double max_number = 1e12;  // Far above any machine; the product is exact.
    const bool is_number = value->kind == Kind::scalar && error == std::errc() &&
                           std::isfinite(number) && number > 0 && number < max_number;
    if (is_number && (rest.empty() || rest == unit)) return rest.empty() ? number : number * factor;
    settings::report_type(document_.diagnostics(), key, expected, *value);
    return std::nullopt;
  };
  if (const auto units = read("cpu", "vcpu", 1024, "CPU units such as `1024`, or `\"1 vCPU\"`"))
    context_.cpus = *units / 1024;
  if (const auto mebibytes = read("memory", "gb", 1024, "MiB such as `2048`, or `\"2 GB\"`"))
    context_.memory = static_cast<std::int64_t>(*mebibytes);
}

/// Fills TaskContext::may_fail with the containers that are not essential, except those for whose
/// success another container waits: after a failed step with `allow_failure`, that container's step
/// would still run. Returns true if the failure of any other container ends the task.
bool TaskReader::read_essential(const std::vector<const core::Value*>& containers) {
  std::vector<std::pair<std::string, core::Span>> inessential;
  std::set<std::string> awaited, awaited_by_essential;  // Names in a condition SUCCESS.
  for (const core::Value* container : containers) {
    const core::Value *name = given(*container, "name"), *flag = given(*container, "essential"),
                      *dependencies = given(*container, "dependsOn");
    const bool is_essential =
        !flag || settings::read_bool("essential", *flag, document_.diagnostics()).value_or(true);
    if (!is_essential && name) inessential.emplace_back(name->scalar, flag->span);
    if (!dependencies) continue;
    for (const core::Value& each : dependencies->items) {
      const core::Value *other = each.find("containerName"), *condition = each.find("condition");
      if (!other || !condition || condition->scalar != "SUCCESS") continue;
      awaited.insert(other->scalar);
      if (is_essential) awaited_by_essential.insert(other->scalar);
    }
  }
  bool ends_task = true;
  for (const auto& [name, span] : inessential) {
    if (!awaited.contains(name)) {
      context_.may_fail.insert(name);
    } else if (!awaited_by_essential.contains(name)) {
      ends_task = false;
      document_.report_unsupported(
          "'essential: false' of container '" + name +
              "' is honoured in part: the other steps continue when it fails, but the "
              "run counts as failed, because another container waits for its success",
          span);
    }
  }
  return ends_task;
}

/// Reads the keys that become settings of all steps.
void TaskReader::read_settings(const core::Value& task, core::Value& pipeline) {
  const core::Span span = task.span;
  model::set_in(pipeline, {"settings", "docker", "skip_build"}, model::plain_value("true", span));
  if (const core::Value* mode = given(task, "networkMode"); mode && !is_blank(*mode)) {
    if (mode->scalar == "bridge" || mode->scalar == "host" || mode->scalar == "none")
      model::set_in(pipeline, {"settings", "docker", "network"},
                    model::text_value(mode->scalar, mode->span));
    else if (mode->scalar == "awsvpc")
      document_.report_unsupported(
          "'networkMode' awsvpc has no counterpart: containers are on the engine's bridge, and "
          "cannot reach each other by name",
          mode->span);
    else
      settings::report_type(document_.diagnostics(), "networkMode", "bridge, host, awsvpc or none",
                            *mode);
  }
  for (const auto& [key, argument] :
       {std::pair("ipcMode", "ipc_mode"), std::pair("pidMode", "pid_mode")}) {
    const core::Value* mode = given(task, key);
    if (!mode || is_blank(*mode)) continue;
    if (mode->scalar == "host")
      model::set_in(pipeline, {"settings", "docker", "run_args", argument},
                    model::text_value("host", mode->span));
    else
      document_.report_unsupported(
          std::string("'") + key + "' " + mode->scalar +
              " is not honoured: each container has a namespace of its own",
          mode->span);
  }
  if (const core::Value* platform = document_.map_at("runtimePlatform", task)) {
    document_.check_keys(*platform, platform_keys, "'runtimePlatform'");
    const core::Value* system = given(*platform, "operatingSystemFamily");
    if (system && system->scalar != "LINUX")
      document_.report_error("'" + system->scalar + "' containers cannot be run: only LINUX",
                             system->span);
    if (const core::Value* kind = given(*platform, "cpuArchitecture")) {
      if (kind->scalar == "X86_64" || kind->scalar == "ARM64")
        model::set_in(
            pipeline, {"settings", "docker", "platform"},
            model::text_value(kind->scalar == "ARM64" ? "linux/arm64" : "linux/amd64", kind->span));
      else
        settings::report_type(document_.diagnostics(), "cpuArchitecture", "X86_64 or ARM64", *kind);
    }
  }
  read_placement(task, pipeline);
}

void TaskReader::read_placement(const core::Value& task, core::Value& pipeline) {
  core::Value expressions = model::empty_value(Kind::list, task.span);
  for (const core::Value* constraint : document_.maps("placementConstraints", task)) {
    document_.check_keys(*constraint, constraint_keys, "a placement constraint");
    const core::Value* type = given(*constraint, "type");
    if (type && type->scalar == "distinctInstance") {
      document_.report_unsupported(
          "the placement constraint distinctInstance is not honoured: there is one host",
          constraint->span);
    } else if (!type || type->scalar != "memberOf") {
      document_.report_error("a placement constraint must have 'type' memberOf or distinctInstance",
                             type ? type->span : constraint->span);
    } else if (const auto expression = document_.text("expression", *constraint)) {
      expressions.items.push_back(
          model::text_value(*expression, given(*constraint, "expression")->span));
    }
  }
  if (!expressions.items.empty())
    model::set_in(pipeline, {"settings", "resources", "placement_constraints"},
                  std::move(expressions));
}

/// Returns the value at a path of keys through nested maps; null if there is none.
const core::Value* member_at(const core::Value* map, std::initializer_list<const char*> path) {
  for (const char* key : path) map = map ? map->find(key) : nullptr;
  return map;
}

/// Checks the containers' GPUs together against the instance types that the placement constraints
/// require.
void TaskReader::check_gpus(const core::Value& pipeline) {
  std::vector<gpu::TaskContainer> task;
  for (const auto& [name, step] : pipeline.find("steps")->members) {
    gpu::TaskContainer container{name.scalar, 0, {}};
    if (const core::Value* count = member_at(&step, {"settings", "resources", "gpu_count"}))
      container.gpus = static_cast<unsigned>(std::stoul(count->scalar));
    if (const core::Value* after = step.find("after"))
      for (const core::Value& other : after->items) container.after.push_back(other.scalar);
    task.push_back(std::move(container));
  }
  const auto group = gpu::most_gpus_at_once(task);
  const core::Value* constraints =
      member_at(&pipeline, {"settings", "resources", "placement_constraints"});
  if (group.members.empty() || !constraints) return;
  std::vector<std::string_view> known;
  for (const auto& type : gpu::instance_types()) known.emplace_back(type.name);
  for (const core::Value& constraint : constraints->items) {
    const auto parsed = gpu::parse_placement(constraint.scalar);
    const auto* placement = std::get_if<gpu::Placement>(&parsed);
    if (!placement) continue;  // The reader of the settings reports the error.
    const gpu::InstanceType* largest = nullptr;
    bool are_all_known = true;
    for (const auto& name : gpu::demanded_values(*placement, "ecs.instance-type", known)) {
      const auto* type = gpu::find_instance_type(name);
      are_all_known &= type != nullptr;
      if (type && (!largest || type->gpus > largest->gpus)) largest = type;
    }
    if (!are_all_known || !largest || largest->gpus >= group.gpus) continue;
    std::vector<std::string> notes;
    for (const auto i : group.members)
      if (group.members.size() > 1)
        notes.push_back("'" + task[i].name + "' asks for " + core::counted(task[i].gpus, "GPU"));
    const gpu::InstanceNeeds needs{.gpus = group.gpus};
    const auto fitting = gpu::fitting_instance_types(needs);
    settings::report(
        document_.diagnostics(), "too-many-gpus",
        (group.members.size() == 1 ? "the container " + gpu::names_of(task, group) + " asks for " +
                                         core::counted(group.gpus, "GPU")
                                   : "the containers " + gpu::names_of(task, group) +
                                         " run at the same time and ask for " +
                                         core::counted(group.gpus, "GPU") + " together") +
            ", and the instance type " + largest->name + " has " + std::to_string(largest->gpus),
        constraint.span, std::move(notes),
        fitting.empty() ? "no instance type has so many"
                        : std::string("the smallest that fits: ") + fitting.front().name);
  }
}

core::Value TaskReader::read(const core::Value& task) {
  context_.span = task.span;
  core::Value pipeline = model::empty_value(Kind::map, task.span);
  document_.check_keys(task, task_keys, "the task definition");
  if (const core::Value* family = given(task, "family")) {
    family_ = family->scalar;
    model::set(pipeline, "name", *family);
  } else {
    document_.report_error("the task definition has no 'family'", task.span);
    model::set(pipeline, "name", model::text_value("task", task.span));
  }
  core::Value tags = model::empty_value(Kind::list, task.span);
  for (const core::Value* tag : document_.maps("tags", task)) {
    document_.check_keys(*tag, tag_keys, "a tag");
    const auto key = document_.text("key", *tag);
    const core::Value* value = given(*tag, "value");
    if (key)
      tags.items.push_back(model::text_value(*key + (value ? "=" + value->scalar : ""), tag->span));
  }
  if (!tags.items.empty()) model::set(pipeline, "tags", std::move(tags));
  read_volumes(task);
  read_limits(task);
  const auto containers = document_.maps("containerDefinitions", task);
  if (containers.empty())
    document_.report_error("the task definition has no containers", task.span);
  if (containers.size() > gpu::max_containers)
    document_.report_error("the task definition has " + std::to_string(containers.size()) +
                               " containers; ECS takes " + std::to_string(gpu::max_containers),
                           containers[gpu::max_containers]->span);
  for (const core::Value* container : containers)
    if (const core::Value* name = given(*container, "name"))
      context_.containers.insert(name->scalar);
  const bool fails_fast = read_essential(containers);
  model::set(pipeline, "execution_mode",
             model::plain_value(fails_fast ? "fail_fast" : "continue_on_failure", task.span));
  // A task is run for its effects, so its results are not reused.
  model::set(pipeline, "cache", model::plain_value("false", task.span));
  // All code of a task is in its images.
  model::set(pipeline, "code", model::empty_value(Kind::list, task.span));
  read_settings(task, pipeline);
  core::Value steps = model::empty_value(Kind::map, task.span);
  ContainerReader reader(document_, context_);
  for (const core::Value* container : containers) reader.read(*container, steps);
  model::set(pipeline, "steps", std::move(steps));
  check_gpus(pipeline);
  return pipeline;
}

/// Returns the task definition in the output of `aws ecs describe-task-definition`; null for
/// another document.
const core::Value* described(const core::Value& document) {
  const core::Value* inner = document.find("taskDefinition");
  return inner && inner->kind == Kind::map ? inner : nullptr;
}

}  // namespace

bool is_task_definition(const core::Value& document) {
  const core::Value* inner = described(document);
  return document.find("containerDefinitions") || (inner && inner->find("containerDefinitions"));
}

void refuse_template(const core::Value& document, const std::string& file, std::string_view text) {
  const auto* version = document.find("AWSTemplateFormatVersion");
  const auto* resources = document.find("Resources");
  const auto* named = document.find("taskDefinition");
  const bool is_template =
      version || (resources && resources->kind == Kind::map && !document.find("steps"));
  const bool is_service = named && named->kind == Kind::scalar && !document.find("steps");
  if (!is_template && !is_service) return;
  core::Diagnostic refusal;
  refusal.code = is_template ? "cloudformation" : "ecs-service";
  refusal.message =
      is_template ? "this is a template of CloudFormation, whose keys ('ContainerDefinitions') are "
                    "not those of a task definition"
                  : "this is a service or task of ECS, which only names its task definition";
  refusal.span = (version ? version : is_template ? resources : named)->span;
  refusal.suggestion =
      "`aws ecs describe-task-definition --task-definition " +
      (is_template ? "FAMILY` prints the task definition that was made from it"
                   : named->scalar + "` prints the definition, which `pipe import` reads");
  throw core::InputError({std::move(refusal)}, file, std::string(text));
}

core::Value pipeline_of(const core::Value& document, settings::Diagnostics& diagnostics,
                        settings::Diagnostics& notices) {
  const core::Value* inner = document.find("containerDefinitions") ? nullptr : described(document);
  return TaskReader(diagnostics, notices).read(inner ? *inner : document);
}

}  // namespace pipeline::ecs_import
