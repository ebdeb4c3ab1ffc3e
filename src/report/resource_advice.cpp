#include "report/resource_advice.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <set>

#include "core/quantity.hpp"
#include "model/instance.hpp"
#include "report/rank_entries.hpp"

namespace pipeline::report {
namespace {

constexpr std::uint64_t mebibyte = 1u << 20, gibibyte = 1u << 30;
/// Recommended limit, as a multiple of the maximum use.
constexpr double spare = 1.25;
/// Minimum waste that is worth a change.
constexpr double wasteful = 1.5;
constexpr std::uint64_t least_waste = 128 * mebibyte;
/// Part of a limit from which on usage is close to the limit.
constexpr double close_to_limit = 0.9;
constexpr std::chrono::seconds shortest_attempt{1};
constexpr std::chrono::microseconds zero{};

std::uint64_t rounded_up(double bytes) {
  const auto unit = bytes < gibibyte       ? 64 * mebibyte
                    : bytes < 8 * gibibyte ? 256 * mebibyte
                                           : gibibyte;
  return static_cast<std::uint64_t>(std::ceil(bytes / static_cast<double>(unit))) * unit;
}

std::string memory_text(std::uint64_t bytes) {
  return bytes % gibibyte == 0 ? std::to_string(bytes / gibibyte) + "GiB"
                               : std::to_string(bytes / mebibyte) + "MiB";
}

std::string number_text(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", number);
  return text;
}

std::string in_runs(std::size_t runs) {
  return " at most used in " + std::to_string(runs) + (runs == 1 ? " run" : " runs");
}

std::optional<ResourceAdvice> memory_advice(Bytes asked, const StepUse& used) {
  const auto asked_text = core::format_bytes(asked) + " asked, ";
  if (used.is_killed) {
    const auto limit = used.killed_with.value_or(asked);
    if (asked > limit) return std::nullopt;  // No attempt has had as much memory.
    return ResourceAdvice{"memory", memory_text(rounded_up(2.0 * static_cast<double>(limit))),
                          asked_text + "the last attempt was killed for lack of memory" +
                              (limit > asked ? " with " + core::format_bytes(limit) : "")};
  }
  if (used.killed_with && used.worked_with && asked <= *used.killed_with)
    return ResourceAdvice{"memory", memory_text(rounded_up(static_cast<double>(*used.worked_with))),
                          asked_text + "killed for lack of memory with " +
                              core::format_bytes(*used.killed_with) + ", not with " +
                              core::format_bytes(*used.worked_with)};
  if (!used.memory) return std::nullopt;
  const auto enough = rounded_up(spare * static_cast<double>(*used.memory));
  const bool is_wasteful = static_cast<double>(asked) >= wasteful * static_cast<double>(enough) &&
                           asked - enough >= least_waste;
  const bool is_tight =
      static_cast<double>(*used.memory) > close_to_limit * static_cast<double>(asked);
  if (!is_wasteful && !(is_tight && enough > asked)) return std::nullopt;
  return ResourceAdvice{"memory", memory_text(enough),
                        asked_text + core::format_bytes(*used.memory) + in_runs(used.runs)};
}

std::optional<ResourceAdvice> cpu_advice(double asked, const StepUse& used) {
  if (!used.cpus) return std::nullopt;
  // An attempt may have used fewer CPUs than it could have, because other work had them.
  const auto enough = std::max(1.0, std::ceil(2 * spare * *used.cpus) / 2);
  if (asked < wasteful * enough) return std::nullopt;
  return ResourceAdvice{
      "cpu_count", number_text(enough),
      number_text(asked) + " asked, " + number_text(*used.cpus) + in_runs(used.runs)};
}

std::optional<ResourceAdvice> gpu_advice(unsigned asked, const StepUse& used) {
  if (!used.gpus || *used.gpus >= asked) return std::nullopt;
  const auto idle = asked - *used.gpus;
  return ResourceAdvice{"gpu_count", std::to_string(*used.gpus),
                        std::to_string(asked) + " asked, " +
                            (*used.gpus == 0 ? "all" : std::to_string(idle)) + " idle in " +
                            std::to_string(used.runs) + (used.runs == 1 ? " run" : " runs")};
}

/// Returns how many of an attempt's GPUs computed at all; a GPU without a measurement counts.
std::size_t busy_gpus(const core::Usage& usage) {
  constexpr double least = 0.01;
  return static_cast<std::size_t>(std::ranges::count_if(
      usage.gpus, [](const auto& gpu) { return !gpu.peak_load || *gpu.peak_load >= least; }));
}

/// Returns the attempt's usage; if it had several nodes, the most memory and CPU time of a node,
/// because a step asks for resources for each of its nodes.
core::Usage usage_of_node(store::RunStore& store, const store::AttemptRecord& attempt) {
  const auto tasks = store.attempts().tasks(attempt);
  std::map<unsigned, std::optional<std::chrono::microseconds>> nodes;
  for (const auto& task : tasks) {
    auto& cpu = nodes[task.node_rank];
    const auto& used = task.usage;
    if (used.user) cpu = cpu.value_or(zero) + *used.user + used.system.value_or(zero);
  }
  auto most = attempt.usage;
  if (nodes.size() < 2) return most;
  most.peak_memory = memory_of_node(attempt, tasks);
  most.user.reset();
  most.system.reset();
  for (const auto& [number, cpu] : nodes) most.user = std::max(most.user, cpu);
  return most;
}

/// Records the highest limits of memory: of those that were too low, and of those that were enough
/// after that.
void add_limit(StepUse& use, const store::AttemptRecord& attempt) {
  const auto& limit = attempt.usage.memory_limit;
  if (!limit) return;
  if (use.is_killed) {
    use.killed_with = std::max(use.killed_with.value_or(0), *limit);
    if (use.worked_with <= use.killed_with) use.worked_with.reset();
  } else if (attempt.failure_kind.empty() && attempt.ended != WallTime{} && use.killed_with &&
             *limit > *use.killed_with) {
    use.worked_with = std::max(use.worked_with.value_or(0), *limit);
  }
}

}  // namespace

std::map<std::string, StepUse> step_uses(store::RunStore& store, const std::string& pipeline) {
  std::map<std::string, StepUse> uses;
  std::set<std::pair<std::string, std::string>> seen;
  store.attempts().for_each(pipeline, [&](const store::AttemptRecord& attempt) {
    const std::string step(model::base_name(attempt.step));
    auto& use = uses[step];
    const auto used = usage_of_node(store, attempt);
    use.is_killed = attempt.failure_kind == to_string(FailureKind::out_of_memory) ||
                    used.memory_kills.value_or(0) > 0;
    add_limit(use, attempt);
    if (!used.peak_memory && !used.user && used.gpus.empty()) return;
    if (seen.emplace(step, attempt.run).second) ++use.runs;
    if (used.peak_memory) use.memory = std::max(use.memory.value_or(0), *used.peak_memory);
    const auto running = attempt.phases.running.value_or(attempt.took);
    if (running < shortest_attempt) return;
    if (!used.gpus.empty()) use.gpus = std::max(use.gpus.value_or(0), busy_gpus(used));
    if (!used.user) return;
    const std::chrono::duration<double> cpu = *used.user + used.system.value_or(zero);
    use.cpus = std::max(use.cpus.value_or(0), cpu / std::chrono::duration<double>(running));
  });
  return uses;
}

std::vector<ResourceAdvice> advise(const ResourceSettings& asked, const StepUse& used) {
  std::vector<ResourceAdvice> advice;
  const auto add = [&](std::optional<ResourceAdvice> one) {
    if (one) advice.push_back(std::move(*one));
  };
  if (asked.memory) add(memory_advice(*asked.memory, used));
  if (asked.cpu_count) add(cpu_advice(*asked.cpu_count, used));
  if (asked.gpu_count) add(gpu_advice(*asked.gpu_count, used));
  return advice;
}

}  // namespace pipeline::report
