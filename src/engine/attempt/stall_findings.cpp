#include "engine/attempt/stall_findings.hpp"

#include <charconv>
#include <iterator>
#include <optional>

#include "core/log.hpp"
#include "engine/attempt/nccl_state.hpp"
#include "engine/attempt/python_stacks.hpp"
#include "engine/attempt/secret_mask.hpp"

namespace pipeline::engine {
namespace {

/// Reads the rank that orchestrators::odd_rank_text() has named in the first line.
std::optional<unsigned> named_rank(const std::vector<std::string>& lines) {
  constexpr std::string_view before = "rank ";
  unsigned rank = 0;
  if (lines.empty() || !lines.front().starts_with(before)) return std::nullopt;
  const auto& line = lines.front();
  const auto read = std::from_chars(line.data() + before.size(), line.data() + line.size(), rank);
  return read.ec == std::errc() ? std::optional(rank) : std::nullopt;
}

}  // namespace

async::Task<StallFindings> look_into_stall(orchestrators::AttemptRunner& runner,
                                           const orchestrators::Attempt& attempt,
                                           const Ranks& ranks,
                                           const std::vector<std::string>& secrets) {
  StallFindings found;
  auto& lines = found.lines;
  found.process = {attempt.run_id, attempt.step.name, attempt.number};
  try {
    auto waits = attempt.step.nodes ? ranks.waits() : runner.waits_of(attempt);
    lines = co_await std::move(waits);
    const auto rank = named_rank(lines);
    if (attempt.step.nodes) found.process = ranks.process_of(rank.value_or(0), attempt);
    const auto nccl = co_await nccl_state(runner, attempt);
    lines.insert(lines.begin() + (rank ? 1 : 0), nccl.begin(), nccl.end());
    auto stacks = co_await python_stacks(runner, found.process);
    found.has_stacks = !stacks.empty();
    std::ranges::move(stacks, std::back_inserter(lines));
  } catch (const std::exception& error) {
    core::log::info("cannot find out what '" + attempt.step.name + "' waits for: " + error.what());
  }
  for (auto& line : lines) {
    SecretMask mask(secrets);
    auto shown = mask.feed(line);
    line = shown + mask.finish();
  }
  co_return found;
}

}  // namespace pipeline::engine
