#include "orchestrators/odd_rank.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>

namespace pipeline::orchestrators {
namespace {

/// Returns the rank in a line such as `7 python3 train.py (rank 3): ...` of a node with several
/// ranks; nothing if the line does not name its rank.
std::optional<unsigned> rank_in_wait(const std::string& line) {
  constexpr std::string_view before = " (rank ", after = "): ";
  const auto end = line.rfind(after), begin = line.rfind(before, end);
  if (end == line.npos || begin == line.npos) return std::nullopt;
  unsigned rank = 0;
  const auto read = std::from_chars(line.data() + begin + before.size(), line.data() + end, rank);
  if (read.ec != std::errc() || read.ptr != line.data() + end) return std::nullopt;
  return rank;
}

/// Returns the waits of each rank, from the ranks that the lines of each node name. Lines with
/// a rank of another node are left out, because torchrun numbers the processes that it starts
/// itself. If a node has no lines, all of its ranks work. If the lines of a node name no rank,
/// because the agent may not read the variables of its processes, returns the waits by node.
std::map<unsigned, std::vector<std::string>> waits_of_each(const WaitsByRank& all,
                                                           unsigned ranks_of_node) {
  std::map<unsigned, std::vector<std::string>> by_node(all.begin(), all.end());
  if (ranks_of_node == 1) return by_node;
  std::map<unsigned, std::vector<std::string>> each;
  for (const auto& [first, lines] : all) {
    std::map<unsigned, std::vector<std::string>> own;
    for (const auto& line : lines) {
      const auto rank = rank_in_wait(line);
      if (rank && *rank >= first && *rank - first < ranks_of_node) own[*rank].push_back(line);
    }
    for (unsigned i = 0; i < ranks_of_node && lines.empty(); ++i) own[first + i] = {};
    if (own.empty()) return by_node;
    each.merge(own);
  }
  return each;
}

}  // namespace

std::string odd_rank_text(const WaitsByRank& all, unsigned ranks_of_node) {
  std::map<std::string, std::vector<unsigned>> ranks;
  const auto each = waits_of_each(all, ranks_of_node);
  for (const auto& [rank, lines] : each) {
    std::string text;
    for (const auto& line : lines) {
      const auto wait = line.substr(std::min(line.rfind(": "), line.size()));
      if (wait.find(" stopped") != wait.npos) return "rank " + std::to_string(rank) + " is stopped";
      text += wait + "\n";
    }
    ranks[text].push_back(rank);
  }
  if (ranks.size() != 2 || each.size() < 3) return {};
  for (const auto& [text, some] : ranks)
    if (some.size() == 1)
      return "rank " + std::to_string(some.front()) + " waits for something else than the " +
             std::to_string(each.size() - 1) + " others, which are alike";
  return {};
}

}  // namespace pipeline::orchestrators
