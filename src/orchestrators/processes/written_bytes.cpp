#include "orchestrators/processes/written_bytes.hpp"

#include <charconv>
#include <fstream>
#include <optional>

#include "async/sleep.hpp"
#include "core/quantity.hpp"

namespace pipeline::orchestrators::processes {
namespace {

constexpr std::uint64_t min_bytes_between_reports = 10'000'000;
constexpr std::string_view key = "wchar: ";

/// Returns the bytes that the process has written; nothing if it has ended.
std::optional<std::uint64_t> written_by(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/io");
  for (std::string line; std::getline(file, line);) {
    std::uint64_t bytes = 0;
    if (line.starts_with(key) &&
        std::from_chars(line.data() + key.size(), line.data() + line.size(), bytes).ec ==
            std::errc())
      return bytes;
  }
  return std::nullopt;
}

}  // namespace

async::Task<> report_written_bytes(pid_t process, std::function<void(std::string)> on_line,
                                   core::CancelSource& over) {
  std::uint64_t reported = 0;
  while (over.level() == core::StopLevel::none) {
    co_await async::sleep(std::chrono::seconds(1), &over);
    if (over.level() != core::StopLevel::none) co_return;
    const auto written = written_by(process);
    if (!written) co_return;
    if (*written < reported + min_bytes_between_reports) continue;
    reported = *written;
    on_line(core::format_bytes(reported) + " written");
  }
}

}  // namespace pipeline::orchestrators::processes
