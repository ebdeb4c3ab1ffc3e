#include "orchestrators/usage/agent_waits.hpp"

#include <algorithm>
#include <charconv>

#include "orchestrators/usage/process_waits.hpp"

namespace pipeline::orchestrators::usage {
namespace {

/// Reads `S63 futex_wait_queue`.
void add_agent_wait(std::string_view text, ProcessWaits& waits) {
  std::size_t threads = 0;
  const char* const end = text.data() + text.size();
  const auto count = std::from_chars(text.data() + 1, end, threads);
  if (count.ec != std::errc() || threads == 0) return;
  const auto* function = count.ptr == end ? end : count.ptr + 1;
  waits[{text.front(), std::string(function, end)}] += threads;
}

}  // namespace

std::vector<std::string> read_agent_waits(std::string_view text) {
  std::vector<std::string> lines;
  std::string process;
  ProcessWaits waits;
  const auto finish = [&] {
    if (!process.empty() && !waits.empty()) lines.push_back(wait_line(process, waits));
    waits.clear();
  };
  while (!text.empty()) {
    const auto end = std::min(text.find('\t'), text.size());
    const auto part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (part.size() < 2) continue;
    if (part.front() != 'P') {
      add_agent_wait(part, waits);
      continue;
    }
    finish();
    process = part.substr(1);
  }
  finish();
  for (auto& line : lines)
    std::ranges::replace_if(
        line, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  return lines;
}

}  // namespace pipeline::orchestrators::usage
