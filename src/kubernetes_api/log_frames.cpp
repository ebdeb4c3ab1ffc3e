#include "kubernetes_api/log_frames.hpp"

#include <algorithm>
#include <limits>

#include "core/quantity.hpp"
#include "kubernetes_api/time.hpp"

namespace pipeline::kubernetes_api {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t max_fetch = 1 << 20;  ///< Bytes.

}  // namespace

void PodLogFrames::feed(std::string_view bytes) {
  lines_.feed(bytes, [this](std::string_view line) { take_line(line); });
}

void PodLogFrames::take_line(std::string_view line) {
  const auto space = line.find(' ');
  const auto time = parse_time(line.substr(0, space));
  // A line without a time is a message of the server itself, such as `failed to watch file`.
  if (!time || space == line.npos) return on_bytes_(true, std::string(line) + "\n");
  const bool is_new = !last_time_ || *time > *last_time_;
  if (is_new) last_time_ = time;
  const auto rest = line.substr(space + 1);
  if (!agent::begins_as_frame(rest)) {
    // After the first frame, such a line is the rest of a frame whose beginning was in a deleted
    // file.
    if (is_new && reported_ == 0) on_bytes_(true, std::string(rest) + "\n");
  } else if (const auto frame = agent::parse_frame(rest); frame && frame->offset >= reported_) {
    fetch_until(frame->offset);
    report(*frame, rest.size() + 1);
  }
}

/// Reports the next frame. The kinds are those of agent/frames.hpp: `.` ends the log, `u` has the
/// usage, `w` has the waits, `a` the age of the last progress, and others have output.
/// @param size bytes of the frame's line
void PodLogFrames::report(const agent::Frame& frame, std::size_t size) {
  reported_ += size;
  if (frame.kind == '.') {
    ended_ = true;
    return;
  }
  has_begun_ = true;
  if (frame.kind == 'u' || frame.kind == 'w') {
    (frame.kind == 'u' ? usage_ : waits_) = frame.text;
    return;
  }
  waits_.clear();
  last_progress_ = SteadyClock::now() - agent::progress_age(frame);
  agent::pass_output(frame, on_bytes_);
}

/// Reports the frames from reported_ to the offset that the agent's copy of the log has, and says
/// how many bytes are missing.
void PodLogFrames::fetch_until(std::uint64_t offset) {
  core::Lines lines;
  for (auto from = reported_; copy_ && from < offset;) {
    const auto bytes =
        copy_(from, static_cast<std::size_t>(std::min<std::uint64_t>(offset - from, max_fetch)));
    // Stops at the end of the file, and after 1 MiB without a frame: a step can replace the agent's
    // file by one of any size and content.
    if (bytes.empty() || from - reported_ > max_fetch) break;
    from += bytes.size();
    lines.feed(bytes, [this](std::string_view line) {
      const auto frame = agent::parse_frame(line);
      if (frame && frame->offset == reported_) report(*frame, line.size() + 1);
    });
  }
  if (reported_ >= offset || offset == std::numeric_limits<std::uint64_t>::max()) return;
  on_bytes_(true,
            "[kubernetes] " + core::format_bytes(offset - reported_) +
                " of the log are missing here: the node deleted them before they were read\n");
  reported_ = offset;
}

void PodLogFrames::finish() {
  if (!ended_) fetch_until(std::numeric_limits<std::uint64_t>::max());
}

}  // namespace pipeline::kubernetes_api
