#include "kubernetes_api/log_frames.hpp"

#include <algorithm>
#include <limits>

#include "core/quantity.hpp"
#include "kubernetes_api/time.hpp"

namespace pipeline::kubernetes_api {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t max_fetch = 1 << 20;

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
  } else if (const auto frame = agent::frame_of(rest); frame && frame->place >= reported_) {
    fetch_until(frame->place);
    report(*frame, rest.size() + 1);
  }
}

/// Reports a frame whose offset is the current one. The kinds are those of agent/frames.hpp: `.`
/// ends the log, `u` has the usage, `w` has the waits, others have output.
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
  last_progress_ = SteadyClock::now() - agent::age_of(frame);
  agent::pass_output(frame, on_bytes_);
}

void PodLogFrames::fetch_until(std::uint64_t place) {
  core::Lines lines;
  for (auto from = reported_; copy_ && from < place;) {
    const auto bytes =
        copy_(from, static_cast<std::size_t>(std::min<std::uint64_t>(place - from, max_fetch)));
    // The file has no more bytes, or the agent has not written it: a step can put a file of any
    // size and content there.
    if (bytes.empty() || from - reported_ > max_fetch) break;
    from += bytes.size();
    lines.feed(bytes, [this](std::string_view line) {
      const auto frame = agent::frame_of(line);
      if (frame && frame->place == reported_) report(*frame, line.size() + 1);
    });
  }
  if (reported_ >= place || place == std::numeric_limits<std::uint64_t>::max()) return;
  on_bytes_(true,
            "[kubernetes] " + core::format_bytes(place - reported_) +
                " of the log are missing here: the node deleted them before they were read\n");
  reported_ = place;
}

void PodLogFrames::finish() {
  if (!ended_) fetch_until(std::numeric_limits<std::uint64_t>::max());
}

}  // namespace pipeline::kubernetes_api
