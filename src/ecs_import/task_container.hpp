/// @file
/// Reads a container of a task definition as a step.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "ecs_import/task_document.hpp"

namespace pipeline::ecs_import {

/// The values of a task that the reader of each container needs.
struct TaskContext {
  core::Span span;  ///< Position of the task definition.
  std::map<std::string, std::string>
      volumes;  ///< From a volume's name to its source: a path or docker's volume; empty if pipe
                ///< cannot provide it.
  std::optional<double> cpus;          ///< Limit of all containers together.
  std::optional<std::int64_t> memory;  ///< Limit of all containers together, MiB.
  std::set<std::string> containers;    ///< The names of all containers.
  std::set<std::string> may_fail;      ///< Names of containers whose steps get `allow_failure`.
};

class ContainerReader {
 public:
  ContainerReader(TaskDocument& document, const TaskContext& task)
      : document_(document), task_(task) {}
  /// Adds the container's step to the steps.
  void read(const core::Value& container, core::Value& steps);

 private:
  void read_command(const core::Value& container, core::Value& step);
  /// Reads `environment` and `secrets`.
  void read_environment(const core::Value& container, core::Value& step);
  void read_order(const core::Value& container, core::Value& step);  ///< `dependsOn`.
  void read_cpu(const core::Value& container, core::Value& step);
  void read_memory(const core::Value& container, core::Value& step);
  void read_gpus(const core::Value& container, core::Value& step);  ///< `resourceRequirements`.
  std::optional<std::int64_t> number_of(const core::Value& container, const char* key,
                                        std::int64_t min, std::int64_t max);
  core::Span span_of(const core::Value& container, const char* key) const;
  void read_mounts(const core::Value& container, core::Value& step);
  void read_options(const core::Value& container, core::Value& step);
  /// Reads `linuxParameters`.
  void read_linux(const core::Value& linux, core::Value& step);
  void read_devices(const core::Value& linux, core::Value& step);
  void read_tmpfs(const core::Value& linux, core::Value& step);
  void read_extra_hosts(const core::Value& container, core::Value& step);

  TaskDocument& document_;
  const TaskContext& task_;
  std::string label_;  ///< Name of the container for messages, such as `container 'x'`.
  bool has_entry_point_notice_ = false;  ///< The notice about entry points has been given.
};

}  // namespace pipeline::ecs_import
