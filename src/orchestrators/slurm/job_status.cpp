#include "orchestrators/slurm/job_status.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/file.hpp"

namespace pipeline::orchestrators::slurm {
namespace {

using nlohmann::json;

constexpr std::uint64_t largest_number = std::uint64_t{1} << 53U;
constexpr std::size_t largest_frame = 1 << 16, read_size = 1 << 16;
constexpr int largest_code = 255, largest_signal = 64, largest_errno = 4095;

template <class Value>
void take_number(const json& object, const char* name, std::optional<Value>& value) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number_unsigned()) return;
  const auto number = found->get<std::uint64_t>();
  if (number <= largest_number) value = Value(static_cast<std::int64_t>(number));
}

std::optional<int> small_number(const json& object, const char* name, int largest) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number_unsigned()) return std::nullopt;
  const auto number = found->get<std::uint64_t>();
  return number <= static_cast<std::uint64_t>(largest) ? std::optional(static_cast<int>(number))
                                                       : std::nullopt;
}

}  // namespace

std::optional<JobStatus> parse_status(std::string_view text) {
  const auto read = core::parse_json(text);
  if (!read.is_object()) return std::nullopt;
  JobStatus status;
  status.exit_code = small_number(read, "code", largest_code);
  status.signal = small_number(read, "signal", largest_signal);
  status.not_executed = small_number(read, "not_executed", largest_errno).value_or(0);
  status.stopped = read.value("stopped", json(false)) == true;
  if (!status.exit_code && !status.signal && status.not_executed == 0) return std::nullopt;
  const auto usage = read.find("usage");
  if (usage == read.end() || !usage->is_object()) return status;
  take_number(*usage, "user_us", status.usage.user);
  take_number(*usage, "system_us", status.usage.system);
  take_number(*usage, "peak_memory", status.usage.peak_memory);
  take_number(*usage, "read", status.usage.read);
  take_number(*usage, "written", status.usage.written);
  take_number(*usage, "memory_kills", status.usage.memory_kills);
  std::optional<std::chrono::milliseconds> running;
  take_number(*usage, "running_ms", running);
  if (running && *running < std::chrono::days(3650)) status.running = *running;
  return status;
}

bool JobLog::read() {
  // Opened anew each time: a network file system looks for news when a file is opened.
  const core::Descriptor file(
      ::open(file_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) return false;
  bool has_news = false;
  std::string bytes(read_size, '\0');
  for (;;) {
    const auto count = ::pread(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset_));
    if (count <= 0) return has_news;
    offset_ += static_cast<std::uint64_t>(count);
    has_news = true;
    take(std::string_view(bytes).substr(0, static_cast<std::size_t>(count)));
  }
}

void JobLog::take(std::string_view bytes) {
  if (is_broken_) return;
  rest_ += bytes;
  std::size_t done = 0;
  while (!is_broken_ && done < rest_.size()) {
    const auto size = take_frame(std::string_view(rest_).substr(done));
    if (size == 0) break;
    done += size;
  }
  rest_.erase(0, done);
}

std::size_t JobLog::take_frame(std::string_view text) {
  const char kind = text.front();
  const auto* const end = text.data() + text.size();
  std::uint64_t offset = 0, size = 0;
  const auto [after_offset, no_offset] = std::from_chars(text.data() + 1, end, offset);
  if (kind == '.') {
    if (after_offset == end) return 0;
    ended_ = true;
    return static_cast<std::size_t>(after_offset - text.data()) + 1;
  }
  if (after_offset == end) return 0;
  const auto [after_size, no_size] = std::from_chars(after_offset + 1, end, size);
  if (after_size == end && no_offset == std::errc() && size <= largest_frame) return 0;
  if (no_offset != std::errc() || no_size != std::errc() || *after_size != ' ' ||
      size > largest_frame) {  // The step has written to its agent's file.
    is_broken_ = true;
    return 0;
  }
  const auto head = static_cast<std::size_t>(after_size - text.data()) + 1;
  if (text.size() < head + size + 1) return 0;
  const auto content = std::string(text.substr(head, size));
  const bool is_whole = kind == 'o' || kind == 'e';
  if (is_whole || kind == 'O' || kind == 'E')
    on_bytes_(kind == 'e' || kind == 'E', is_whole ? content + "\n" : content);
  return head + size + 1;
}

}  // namespace pipeline::orchestrators::slurm
