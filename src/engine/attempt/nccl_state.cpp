#include "engine/attempt/nccl_state.hpp"

#include <charconv>
#include <map>
#include <optional>

#include "core/diagnostic.hpp"
#include "core/text.hpp"

namespace pipeline::engine {
namespace {

constexpr std::size_t max_lines = 40, max_width = 300;

/// `timeout` ends an `ncclras` that hangs; images without coreutils or busybox lack it. The option
/// `-t` of `ncclras` limits only how long it waits for answers of other processes.
constexpr const char* ask_nccl =
    "command -v ncclras >/dev/null || exit 1; t=$(command -v timeout)\n"
    "exec ${t:+$t 8} ncclras -t 4 "
    "${NCCL_RAS_ADDR:+-h ${NCCL_RAS_ADDR%:*} -p ${NCCL_RAS_ADDR##*:}} 2>/dev/null";

std::optional<std::uint64_t> number_after(std::string_view line, std::string_view mark) {
  const auto at = line.find(mark);
  if (at == line.npos) return std::nullopt;
  std::uint64_t number = 0;
  const auto* begin = line.data() + at + mark.size();
  const auto read = std::from_chars(begin, line.data() + line.size(), number);
  return read.ec == std::errc() ? std::optional(number) : std::nullopt;
}

/// Reads `Communicator ranks have different AllReduce operation counts` and the lines behind it:
/// `7 ranks have launched up to operation 6650`, `Rank 3 has launched up to operation 6649 -- ...`,
/// `Rank 3 has not launched any operations`.
class OperationCounts {
 public:
  void read(std::string_view line) {
    constexpr std::string_view before = "ranks have different ", after = " operation counts";
    if (const auto begin = line.find(before), end = line.find(after);
        begin != line.npos && end != line.npos && end > begin + before.size()) {
      conclude();
      operation_ = line.substr(begin + before.size(), end - begin - before.size());
      return;
    }
    if (operation_.empty() || line.find("launched") == line.npos) return;
    const auto launched = number_after(line, "up to operation ").value_or(0);
    if (const auto rank = number_after(line, "Rank "))
      ranks_by_count_[launched] = "rank " + std::to_string(*rank);
    else if (const auto ranks = number_after(line, "  "))
      ranks_by_count_[launched] = std::to_string(*ranks) + " ranks";
  }
  /// Returns the line that says which rank is behind; empty if none is.
  std::string text() {
    conclude();
    return report_;
  }

 private:
  /// Ends the lines about one operation. Only the first operation with a difference is reported.
  void conclude() {
    if (report_.empty() && !operation_.empty() && ranks_by_count_.size() > 1) {
      const auto& [first, behind] = *ranks_by_count_.begin();
      const auto& [last, ahead] = *ranks_by_count_.rbegin();
      const std::string verb = behind.starts_with("rank ") ? " has" : " have";
      report_ = "NCCL: " + behind + verb +
                (first == 0 ? " not launched any " + operation_
                            : " launched " + operation_ + " only up to operation " +
                                  std::to_string(first)) +
                ", " + ahead + " up to " + std::to_string(last);
    }
    operation_.clear();
    ranks_by_count_.clear();
  }

  std::string operation_, report_;
  /// `rank 3` or `7 ranks`, keyed by the number of operations that they have launched.
  std::map<std::uint64_t, std::string> ranks_by_count_;
};

}  // namespace

std::vector<std::string> read_nccl_state(std::string_view text) {
  std::vector<std::string> lines;
  OperationCounts counts;
  bool is_relevant = false;
  for (const auto line : core::split(text, '\n')) {
    if (line == "Errors" || line == "Warnings") is_relevant = true;
    const bool is_ruler = line.find_first_not_of('=') == line.npos;
    if (!is_relevant || is_ruler || line == "Errors" || line == "Warnings") continue;
    counts.read(line);
    if (lines.size() < max_lines)
      lines.push_back("ncclras: " + core::printable(line.substr(0, max_width)));
  }
  if (auto report = counts.text(); !report.empty())
    lines.insert(lines.begin(), core::printable(report));
  return lines;
}

async::Task<std::vector<std::string>> nccl_state(orchestrators::AttemptRunner& runner,
                                                 const orchestrators::Attempt& attempt) {
  orchestrators::RunningProcess process{attempt.run_id, attempt.step.name, attempt.number};
  if (attempt.step.nodes) process.rank = 0;  // `ncclras` there asks all other ranks itself.
  std::vector<std::string> words{"/bin/sh", "-c", ask_nccl};
  const auto output = co_await runner.ask(std::move(process), std::move(words));
  co_return output ? read_nccl_state(*output) : std::vector<std::string>{};
}

}  // namespace pipeline::engine
