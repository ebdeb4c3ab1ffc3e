#include "orchestrators/slurm/preflight.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "core/joined.hpp"
#include "core/quantity.hpp"
#include "core/text.hpp"
#include "model/step_span.hpp"
#include "orchestrators/slurm/job_script.hpp"
#include "settings/accelerator.hpp"

namespace pipeline::orchestrators::slurm {
namespace {

/// Returns the number at the beginning of `8`, `8+` or `4000+`.
std::uint64_t leading_number(std::string_view text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// Reads `1-12:00:00`, `2:30:00` or `30:00`; nothing for `infinite`.
std::optional<std::chrono::minutes> parse_limit(std::string_view text) {
  if (text.empty() || !core::is_digit(text.front())) return std::nullopt;
  std::chrono::seconds time{};
  if (const auto dash = text.find('-'); dash != text.npos) {
    time += std::chrono::days(leading_number(text));
    text.remove_prefix(dash + 1);
  }
  std::chrono::seconds clock{};
  for (const auto part : core::split(text, ':'))
    clock = clock * 60 + std::chrono::seconds(leading_number(part));
  return std::chrono::floor<std::chrono::minutes>(time + clock);
}

/// Reads `gpu:a100:2(S:0-1),gpu:2,license:1`.
void take_gres(std::string_view text, Partition& partition) {
  unsigned gpus = 0;
  for (auto item : core::split(text, ',')) {
    item = item.substr(0, item.find('('));
    const auto parts = core::split(item, ':');
    if (parts.front() != "gpu") continue;
    const bool has_type = parts.size() > 2 || (parts.size() == 2 && leading_number(parts[1]) == 0);
    const std::string type(has_type ? parts[1] : std::string_view());
    if (std::ranges::find(partition.gres_types, type) == partition.gres_types.end())
      partition.gres_types.push_back(type);
    gpus += parts.size() > 1 ? static_cast<unsigned>(leading_number(parts.back())) : 1;
  }
  partition.max_gpus = std::max(partition.max_gpus, gpus);
}

std::vector<std::string> names_of(const std::vector<Partition>& partitions) {
  std::vector<std::string> names;
  for (const auto& partition : partitions) names.push_back(partition.name);
  return names;
}

core::Diagnostic at_step(const StepSpec& step, std::string message, std::vector<std::string> notes,
                         std::string suggestion = {}) {
  return {.code = "slurm-resources",
          .message = "'" + step.name + "' " + std::move(message),
          .span = model::span_of(step),
          .notes = std::move(notes),
          .suggestion = std::move(suggestion)};
}

void check_gpus(const Partition& partition, const StepSpec& step,
                std::vector<core::Diagnostic>& found) {
  const auto gpus = settings::gpu_request(step.settings->resources);
  if (!gpus.wanted()) return;
  using Selection = settings::GpuRequest::Selection;
  if (gpus.selection == Selection::all) {
    found.push_back(
        at_step(step, "asks for all GPUs of a machine, but jobs ask Slurm for a number of GPUs",
                {"write `gpu_count`"}));
    return;
  }
  if (partition.max_gpus < gpus.count) {
    found.push_back(at_step(step, "asks for " + core::counted(gpus.count, "GPU"),
                            {"the nodes of the partition '" + partition.name + "' have at most " +
                             std::to_string(partition.max_gpus)}));
    return;
  }
  if (!gpus.model || gres_type_of(*gpus.model, partition.gres_types)) return;
  found.push_back(at_step(
      step, "asks for GPUs of the class '" + *gpus.model + "'",
      {"the partition '" + partition.name + "' has: " + core::joined(partition.gres_types, ", ")},
      core::did_you_mean(*gpus.model, partition.gres_types)));
}

void check_resources(const Partition& partition, const StepSpec& step,
                     std::vector<core::Diagnostic>& found) {
  const auto& resources = step.settings->resources;
  const auto limit = "the nodes of the partition '" + partition.name + "' have at most ";
  if (resources.cpu_count && std::ceil(*resources.cpu_count) > partition.max_cpus)
    found.push_back(
        at_step(step,
                "asks for " +
                    core::counted(static_cast<std::size_t>(std::ceil(*resources.cpu_count)), "CPU"),
                {limit + std::to_string(partition.max_cpus)}));
  if (resources.memory && *resources.memory > partition.max_memory)
    found.push_back(at_step(step, "asks for " + core::format_bytes(*resources.memory),
                            {limit + core::format_bytes(partition.max_memory)}));
  if (step.nodes && step.nodes.count > partition.nodes)
    found.push_back(
        at_step(step, "has " + core::counted(step.nodes.count, "node"),
                {"the partition '" + partition.name + "' has " + std::to_string(partition.nodes)}));
  check_gpus(partition, step, found);
}

/// Reports a time limit above the partition's, with which Slurm would let the job wait for ever.
void check_time(const Partition& partition, const StepSpec& step,
                std::vector<core::Diagnostic>& found) {
  const auto limit = time_limit(step);
  if (!limit || !partition.max_time || *limit <= *partition.max_time) return;
  const auto minutes = [](std::chrono::minutes time) {
    return core::counted(static_cast<std::size_t>(time.count()), "minute");
  };
  found.push_back(
      at_step(step, "asks for " + minutes(*limit) + ", by its `timeout` or `slurm.time`",
              {"the partition '" + partition.name + "' gives a job at most " +
               minutes(*partition.max_time)},
              "`settings: {slurm: {time: " + std::to_string(partition.max_time->count()) +
                  "m}}` asks for the partition's limit, whatever the `timeout` is"));
}

struct Refusal {
  std::string message, suggestion;
};

/// Returns why jobs in these partitions, separated by commas, would not start.
std::optional<Refusal> refusal_of(const std::vector<Partition>& partitions,
                                  std::string_view wanted) {
  const auto names = names_of(partitions);
  for (const auto each : core::split(wanted, ',')) {
    const std::string name(each);
    const auto found = std::ranges::find(partitions, name, &Partition::name);
    if (found == partitions.end())
      return Refusal{
          "the Slurm cluster has no partition '" + name + "'; it has: " + core::joined(names, ", "),
          core::did_you_mean(name, names)};
    if (!found->is_up)
      return Refusal{"the partition '" + name + "' is down: it starts no jobs", {}};
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> ignored_conditions(const ResourceSettings& resources) {
  std::vector<std::string> notices;
  const auto add = [&](bool is_set, const char* name, const char* instead) {
    if (is_set)
      notices.push_back(std::string("`resources.") + name + "` has no effect on Slurm: " + instead);
  };
  constexpr const char* of_gpus = "`gpu_class` and `slurm.constraint` choose the GPUs";
  constexpr const char* of_nodes = "`slurm.constraint` chooses the nodes";
  add(resources.gpu_memory.has_value(), "gpu_memory", of_gpus);
  add(resources.compute_capability.has_value(), "compute_capability", of_gpus);
  add(resources.instance_type.has_value(), "instance_type", of_nodes);
  add(!resources.placement_constraints.items().empty(), "placement_constraints", of_nodes);
  return notices;
}

std::vector<Partition> parse_partitions(std::string_view output) {
  constexpr std::size_t fields = 7;
  constexpr Bytes mebibyte = Bytes{1} << 20;
  std::vector<Partition> partitions;
  for (const auto line : core::lines_of(output)) {
    const auto parts = core::split(core::trimmed(line), '|');
    if (parts.size() != fields) continue;
    auto name = std::string(parts[0]);
    const bool is_default = name.ends_with('*');
    if (is_default) name.pop_back();
    auto found = std::ranges::find(partitions, name, &Partition::name);
    if (found == partitions.end()) {
      partitions.push_back({.name = name, .is_default = is_default});
      found = partitions.end() - 1;
    }
    found->is_up = parts[1] == "up";
    found->max_cpus = std::max(found->max_cpus, static_cast<unsigned>(leading_number(parts[2])));
    found->max_memory = std::max(found->max_memory, leading_number(parts[3]) * mebibyte);
    take_gres(parts[4], *found);
    found->max_time = parse_limit(parts[5]);
    found->nodes += static_cast<unsigned>(leading_number(parts[6]));
  }
  return partitions;
}

Associations parse_associations(std::string_view output) {
  Associations found;
  const auto add = [](std::vector<std::string>& names, std::string_view name) {
    if (!name.empty() && std::ranges::find(names, name) == names.end()) names.emplace_back(name);
  };
  for (const auto line : core::lines_of(output)) {
    const auto parts = core::split(core::trimmed(line), '|');
    if (parts.size() != 2) continue;
    add(found.accounts, parts[0]);
    for (const auto name : core::split(parts[1], ',')) add(found.qos, name);
  }
  return found;
}

bool names_association(std::string_view refusal) {
  return refusal.find("Invalid account") != refusal.npos ||
         refusal.find("Invalid qos") != refusal.npos;
}

void explain_association(const Associations& known, const std::vector<std::string>& options,
                         core::Diagnostic& diagnostic) {
  const bool is_qos = diagnostic.message.find("Invalid qos") != std::string::npos;
  const auto& names = is_qos ? known.qos : known.accounts;
  const std::string option = is_qos ? "--qos=" : "--account=";
  if (names.empty()) return;
  diagnostic.notes.push_back(std::string("you have the ") + (is_qos ? "QOS: " : "accounts: ") +
                             core::joined(names, ", "));
  for (const auto& each : options) {
    if (!each.starts_with(option)) continue;
    const auto value = each.substr(option.size());
    if (std::ranges::find(names, value) == names.end())
      diagnostic.suggestion = core::did_you_mean(value, names);
  }
}

std::vector<std::string> gres_types_of(const std::vector<Partition>& partitions) {
  std::vector<std::string> types;
  for (const auto& partition : partitions)
    for (const auto& type : partition.gres_types)
      if (!type.empty() && std::ranges::find(types, type) == types.end()) types.push_back(type);
  return types;
}

void check_partition(const std::vector<Partition>& partitions, const std::string& name) {
  if (const auto refusal = refusal_of(partitions, name))
    throw core::InputError(refusal->message, refusal->suggestion);
}

void check_state_folder(const std::string& folder) {
  if (folder.find('\\') != std::string::npos)
    throw core::InputError("the state folder " + folder +
                               " has a backslash in its path, which sbatch takes out of the names "
                               "of files: jobs could not write their output",
                           "name another one by `--state` or PIPE_HOME");
}

std::vector<core::Diagnostic> check_steps(const std::vector<Partition>& partitions,
                                          const StringMap& connection,
                                          const std::vector<const StepSpec*>& steps) {
  std::vector<core::Diagnostic> found;
  for (const auto* step : steps) {
    const auto& own = step->settings->slurm;
    const auto refusal = own.partition ? refusal_of(partitions, *own.partition) : std::nullopt;
    if (refusal) {
      found.push_back(at_step(*step, "cannot run: " + refusal->message, {}, refusal->suggestion));
      continue;
    }
    const auto given = connection.find("partition");
    const auto wanted =
        own.partition.value_or(given == connection.end() ? std::string() : given->second);
    const auto partition = std::ranges::find_if(partitions, [&](const Partition& one) {
      return wanted.empty() ? one.is_default : one.name == wanted;
    });
    if (partition == partitions.end()) continue;
    check_resources(*partition, *step, found);
    // A QOS may have limits in place of the partition's.
    if (!own.qos && !connection.contains("qos")) check_time(*partition, *step, found);
  }
  return found;
}

}  // namespace pipeline::orchestrators::slurm
