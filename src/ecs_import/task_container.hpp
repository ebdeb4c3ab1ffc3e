/// @file
/// Reads a container of a task definition as a step.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "ecs_import/task_document.hpp"

namespace pipeline::ecs_import {

/// The task's values that apply to all of its containers.
struct TaskFrame {
  core::Span span;
  std::map<std::string, std::string>
      volumes;  ///< From a volume's name to its source: a path or docker's volume; empty if pipe
                ///< cannot provide it.
  std::optional<double> cpus;
  std::optional<std::int64_t> memory;  ///< MiB.
  std::set<std::string> containers;    ///< The names of all containers.
  std::set<std::string> may_fail;      ///< Names of containers whose failure ends nothing.
};

class ContainerReader {
 public:
  ContainerReader(TaskDocument& document, const TaskFrame& task)
      : document_(document), task_(task) {}
  /// Adds the container's step to the steps.
  void read(const core::Value& container, core::Value& steps);

 private:
  void read_command(const core::Value& container, core::Value& step);
  void read_environment(const core::Value& container, core::Value& step);  ///< And the secrets.
  void read_order(const core::Value& container, core::Value& step);        ///< `dependsOn`.
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
  /// Copies the list of maps under `key` to docker's `run_args`, each map as a text `A:B`.
  /// @param first, second keys of A and B in a map
  /// @param argument      key in `run_args`
  void join(const std::string& key, const core::Value& from, const char* first, const char* second,
            const char* argument, core::Value& step);

  TaskDocument& document_;
  const TaskFrame& task_;
  std::string place_;  ///< Name of the container for messages, such as `container 'x'`.
  bool has_told_of_entry_points_ = false;  ///< The notice about entry points was given.
};

}  // namespace pipeline::ecs_import
