#include "orchestrators/slurm/job_status.hpp"

#include <signal.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "agent/frames.hpp"
#include "agent/reported_usage.hpp"
#include "async/sleep.hpp"
#include "core/bounded_json.hpp"
#include "core/regular_file.hpp"

namespace pipeline::orchestrators::slurm {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

constexpr std::size_t max_frame = 1 << 16;
constexpr std::uint64_t max_code = 255, max_signal = 64, max_errno = 4095;

std::optional<int> small_number(const json& object, const char* name, std::uint64_t max) {
  const auto number = agent::reported_count(object, name);
  return number && *number <= max ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

}  // namespace

bool may_be_caused_by_slurm(const JobStatus& status) {
  // A shell whose program a signal has ended exits with 128 plus the signal's number.
  const int signal = status.signal.value_or(status.exit_code.value_or(0) - 128);
  return status.stopped || status.no_container || signal == SIGKILL || signal == SIGTERM;
}

std::optional<JobStatus> parse_status(std::string_view text) {
  const auto read = core::parse_json(text);
  if (!read.is_object()) return std::nullopt;
  JobStatus status;
  status.exit_code = small_number(read, "code", max_code);
  status.signal = small_number(read, "signal", max_signal);
  status.not_executed = small_number(read, "not_executed", max_errno).value_or(0);
  status.stopped = read.value("stopped", json(false)) == true;
  status.no_container = read.value("no_container", json(false)) == true;
  if (!status.exit_code && !status.signal && status.not_executed == 0 && !status.no_container)
    return std::nullopt;
  const auto usage = read.find("usage");
  if (usage == read.end() || !usage->is_object()) return status;
  status.running =
      agent::read_reported_usage(*usage, status.usage).value_or(std::chrono::milliseconds{});
  return status;
}

bool JobLog::read() {
  has_more_ = false;
  if (is_broken_) return false;  // What follows is not shown, and may have no end.
  // Opened anew each time: a network file system looks for news when a file is opened.
  const auto file = core::open_untrusted_file(file_);
  if (!file) return false;
  std::string bytes(max_read, '\0');
  const auto count = ::pread(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset_));
  has_more_ = count == static_cast<ssize_t>(bytes.size());
  if (count <= 0) return false;
  bytes.resize(static_cast<std::size_t>(count));
  offset_ += bytes.size();
  lines_.feed(bytes, [this](std::string_view line) { take_line(line); });
  return true;
}

async::Task<> JobLog::read_rest(bool has_end, core::CancelSource& cancel) {
  constexpr int max_silent_looks = 100;
  std::error_code error;
  const auto size = std::filesystem::file_size(file_, error);  // A lost node may write on.
  for (int silent = 0; !ended_ && !is_broken_ && silent < max_silent_looks;) {
    const bool has_news = read();
    if (!has_end && (!has_news || offset_ >= size)) break;
    if (cancel.level() == core::StopLevel::immediate) break;
    silent = has_news ? 0 : silent + 1;
    co_await async::sleep(has_news ? 0ms : 20ms);
  }
}

void JobLog::take_line(std::string_view line) {
  if (is_broken_) return;
  const auto frame = agent::parse_frame(line);
  if (!frame || frame->text.size() > max_frame) {
    is_broken_ = true;  // The step has written to its agent's file.
  } else if (frame->kind == '.') {
    ended_ = true;
  } else if (frame->kind == 'w') {
    report_.waits = frame->text;
  } else if (frame->kind != 'u') {
    report_ = {.progressed = std::chrono::steady_clock::now() - agent::progress_age(*frame)};
    agent::pass_output(*frame, on_bytes_);
  }
}

}  // namespace pipeline::orchestrators::slurm
