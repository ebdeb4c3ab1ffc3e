/// @file
/// Compares what steps ask for with what the cluster has, before anything is submitted.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pipeline/settings.hpp>
#include <pipeline/spec.hpp>

#include "core/diagnostic.hpp"

namespace pipeline::orchestrators::slurm {

/// A partition, as sinfo shows it.
struct Partition {
  std::string name;
  bool is_up = true;
  unsigned max_cpus = 0;                ///< Maximum of a node.
  Bytes max_memory = 0;                 ///< Maximum of a node.
  std::vector<std::string> gres_types;  ///< Types of GPUs; an empty text for GPUs without a type.
  unsigned max_gpus = 0;                ///< Maximum of a node.
  bool is_default = false;
  unsigned nodes = 0;                                 ///< Number of its nodes.
  std::optional<std::chrono::minutes> max_time = {};  ///< Unset: jobs may run for ever.
};

/// The format of sinfo that parse_partitions() reads.
inline constexpr const char* partition_format = "%P|%a|%c|%m|%G|%l|%D";

/// Reads the output of sinfo: a line for each kind of node in a partition.
std::vector<Partition> parse_partitions(std::string_view output);

/// Returns all types of GPUs.
std::vector<std::string> gres_types_of(const std::vector<Partition>& partitions);

/// Throws InputError if the cluster has no partition of that name, or if that accepts no jobs.
/// @param name several are separated by commas
void check_partition(const std::vector<Partition>& partitions, const std::string& name);

/// Throws InputError if the state folder's path has a backslash: sbatch removes backslashes from
/// the names of output files, and does not replace `%a` in such names.
void check_state_folder(const std::string& folder);

/// Returns a diagnostic for each step whose partition does not exist, or has no nodes that can run
/// it.
/// @param connection fields of the profile, with sbatch's names, for steps that do not set their
/// own values
std::vector<core::Diagnostic> check_steps(const std::vector<Partition>& partitions,
                                          const StringMap& connection,
                                          const std::vector<const StepSpec*>& steps);

/// Returns a sentence on each of the step's conditions for nodes and GPUs that has no effect on
/// Slurm.
std::vector<std::string> ignored_conditions(const ResourceSettings& resources);

/// The accounts and QOS (qualities of service) that the user may use.
struct Associations {
  std::vector<std::string> accounts, qos;
};

/// Reads the output of `sacctmgr --parsable2 show associations format=account,qos`.
Associations parse_associations(std::string_view output);

/// Returns true if sbatch has refused the account or the QOS with this text.
bool names_association(std::string_view refusal);

/// Adds to the diagnostic of a refusal which accounts or QOS the user may use in place of the one
/// among these options of sbatch.
void explain_association(const Associations& known, const std::vector<std::string>& options,
                         core::Diagnostic& diagnostic);

}  // namespace pipeline::orchestrators::slurm
