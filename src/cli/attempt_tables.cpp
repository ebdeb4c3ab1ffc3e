#include "cli/attempt_tables.hpp"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <optional>
#include <utility>

#include "core/joined.hpp"
#include "core/quantity.hpp"

namespace pipeline::cli {
namespace {

using Row = std::vector<Table::Cell>;

constexpr auto phase_headings = {"WAITING", "PREPARING", "TRANSFERS", "RUNNING", "STORING"};
constexpr auto usage_headings = {"CPU", "MEMORY", "LIMIT", "READ", "WRITTEN", "NODE"};

/// Returns `1.2s (image)`, or `1.2s (image 1s, slot 200ms)`. Waits of less than a twentieth of the
/// whole time are left out.
std::string waiting_text(const core::Phases& phases) {
  if (!phases.waiting) return {};
  std::vector<std::pair<std::chrono::milliseconds, std::string>> waits;
  for (const auto& [awaited, time] : phases.waits)
    if (time * 20 >= *phases.waiting) waits.emplace_back(time, for_terminal(awaited));
  std::ranges::sort(waits, std::greater<>());
  const auto text = core::format_duration(*phases.waiting);
  if (waits.empty()) return text;
  if (waits.size() == 1) return text + " (" + waits.front().second + ")";
  const auto text_of = [](const auto& wait) {
    return wait.second + " " + core::format_duration(wait.first);
  };
  return text + " (" + core::joined(waits, ", ", text_of) + ")";
}

void add_phases(const core::Phases& phases, Row& row) {
  row.emplace_back(waiting_text(phases));
  for (const auto& phase : {phases.preparing, phases.transfers, phases.running, phases.storing})
    row.emplace_back(phase ? core::format_duration(*phase) : std::string());
}

void add_usage(const store::AttemptRecord& attempt, Row& row) {
  auto [cpu, memory, limit, read, written] = usage_cells(attempt.usage);
  for (auto* text : {&cpu, &memory, &limit, &read, &written}) row.emplace_back(std::move(*text));
  row.emplace_back(for_terminal(attempt.node));
}

/// Returns the rank that took longest, if it took longer by a tenth than the fastest. Returns
/// nothing if a rank has failed, because a failure ends all ranks.
std::optional<unsigned> slowest_of(const std::vector<store::TaskRecord>& tasks) {
  if (std::ranges::any_of(tasks, [](const store::TaskRecord& task) {
        return task.has_failed_first || !task.running;
      }))
    return std::nullopt;
  const auto ends = std::ranges::minmax_element(tasks, {}, &store::TaskRecord::running);
  if (10 * *ends.max->running <= 11 * *ends.min->running) return std::nullopt;
  return ends.max->rank;
}

}  // namespace

Table attempts_table(const std::string& first, const std::vector<NamedAttempt>& attempts,
                     AttemptColumns columns) {
  Table table;
  Row heading{first};
  if (columns.phases) heading.insert(heading.end(), phase_headings.begin(), phase_headings.end());
  if (columns.usage) heading.insert(heading.end(), usage_headings.begin(), usage_headings.end());
  table.add(std::move(heading));
  for (const auto& [name, attempt] : attempts) {
    Row row{name};
    if (columns.phases) add_phases(attempt.phases, row);
    if (columns.usage) add_usage(attempt, row);
    table.add(std::move(row));
  }
  return table;
}

std::string ranks_text(std::vector<store::TaskRecord> tasks, const std::string& rest,
                       const Paint& paint) {
  constexpr std::size_t max_rows = 64;
  if (tasks.size() < 2) return {};
  const auto slowest = slowest_of(tasks);
  const auto left_out = tasks.size() - std::min(tasks.size(), max_rows);
  if (left_out > 0) {
    std::ranges::stable_sort(tasks, std::greater<>(), [&](const store::TaskRecord& task) {
      return std::pair(task.has_failed_first || task.rank == slowest,
                       task.exit_code.value_or(0) != 0);
    });
    tasks.resize(max_rows);
  }
  Table table;
  table.add({"RANK", "NODE", "TIME", "EXIT CODE", "CPU", "MEMORY", "GPU", "MACHINE", ""});
  for (const auto& task : tasks) {
    const auto used = usage_cells(task.usage);
    const auto* mark = task.has_failed_first  ? "failed first"
                       : task.rank == slowest ? "slowest"
                                              : "";
    const auto index_text = [](unsigned index) { return std::to_string(index); };
    table.add({std::to_string(task.rank),
               std::to_string(task.node_rank),
               task.running ? core::format_duration(*task.running) : "",
               task.exit_code ? std::to_string(*task.exit_code) : "",
               used.cpu,
               used.memory,
               core::joined(task.gpus, ", ", index_text),
               for_terminal(task.node),
               {mark, task.has_failed_first ? Colour::red : Colour::none}});
  }
  auto text = "\n" + table.render(paint);
  if (left_out > 0) text += "and " + counted(left_out, "more rank") + ": " + rest + "\n";
  return text;
}

std::string device_text(const event::Gpu& gpu) {
  return std::to_string(gpu.index) + (gpu.slice ? ":" + std::to_string(*gpu.slice) : "");
}

UsageCells usage_cells(const core::Usage& usage) {
  UsageCells cells;
  const auto bytes = [](const std::optional<std::uint64_t>& count) {
    return count ? core::format_bytes(*count) : std::string();
  };
  if (usage.user || usage.system)
    cells.cpu = core::format_duration(std::chrono::round<std::chrono::milliseconds>(
        usage.user.value_or(std::chrono::microseconds()) +
        usage.system.value_or(std::chrono::microseconds())));
  cells.memory = bytes(usage.peak_memory);
  if (usage.memory_kills) cells.memory += ", " + std::to_string(*usage.memory_kills) + " killed";
  cells.limit = bytes(usage.memory_limit);
  cells.read = bytes(usage.read);
  cells.written = bytes(usage.written);
  return cells;
}

}  // namespace pipeline::cli
