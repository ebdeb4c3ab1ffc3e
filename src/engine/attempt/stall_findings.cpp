#include "engine/attempt/stall_findings.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>

#include "core/log.hpp"
#include "engine/attempt/nccl_state.hpp"
#include "engine/attempt/python_stacks.hpp"
#include "engine/attempt/secret_mask.hpp"

namespace pipeline::engine {
namespace {

/// Returns the rank that the others wait for: orchestrators::odd_rank_text() names it in the first
/// line. Returns nothing if the line names none.
std::optional<unsigned> named_rank(const std::vector<std::string>& lines) {
  constexpr std::string_view before = "rank ";
  unsigned rank = 0;
  if (lines.empty() || !lines.front().starts_with(before)) return std::nullopt;
  const auto& line = lines.front();
  const auto read = std::from_chars(line.data() + before.size(), line.data() + line.size(), rank);
  return read.ec == std::errc() ? std::optional(rank) : std::nullopt;
}

/// Returns the line without secrets. A line may have the beginning of a process's command, which
/// ends before ` (rank 3)`, before `: sleeps in ...`, or with the line.
std::string masked_line(const std::string& line, const std::vector<std::string>& secrets) {
  const auto shown = without_secrets(line, secrets);
  const auto end = std::min({shown.rfind(": "), shown.rfind(" (rank "), shown.size()});
  const auto command = without_cut_secrets(shown.substr(0, end), secrets);
  return without_cut_secrets(command + shown.substr(end), secrets);
}

}  // namespace

async::Task<StallFindings> find_stall_causes(orchestrators::AttemptRunner& runner,
                                             const orchestrators::Attempt& attempt,
                                             const Ranks& ranks,
                                             const std::vector<std::string>& secrets,
                                             const std::function<void(const std::string&)>& tell) {
  StallFindings found;
  auto& lines = found.lines;
  found.process = {attempt.run_id, attempt.step.name, attempt.number};
  const auto add = [&](const std::vector<std::string>& more) {
    for (const auto& line : more) {
      lines.push_back(masked_line(line, secrets));
      tell(lines.back());
    }
    return std::ssize(lines);
  };
  try {
    auto asking = attempt.step.nodes ? ranks.waits() : runner.waits_of(attempt);
    const auto waits = co_await std::move(asking);
    const auto end_of_waits = add(waits);
    const auto rank = named_rank(waits);
    if (attempt.step.nodes) found.process = ranks.process_of(rank.value_or(0), attempt);
    const auto nccl = co_await nccl_state(runner, attempt);
    const auto end_of_nccl = add(nccl);
    const auto first = lines.begin();
    std::rotate(first + (rank ? 1 : 0), first + end_of_waits, first + end_of_nccl);
    const auto stacks = co_await python_stacks(runner, found.process);
    found.has_stacks = !stacks.empty();
    add(stacks);
  } catch (const std::exception& error) {
    core::log::info("cannot find out what '" + attempt.step.name + "' waits for: " + error.what());
  }
  co_return found;
}

}  // namespace pipeline::engine
