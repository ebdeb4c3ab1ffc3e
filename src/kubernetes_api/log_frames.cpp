#include "kubernetes_api/log_frames.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "core/quantity.hpp"
#include "kubernetes_api/time.hpp"

namespace pipeline::kubernetes_api {
namespace {

constexpr std::size_t max_fetch = 1 << 20;

}  // namespace

struct PodLogFrames::Frame {
  char kind;
  std::uint64_t place;
  std::string_view text;
};

/// Parses a line; returns nothing if it is not a frame. A node that rotates a file in the middle of
/// a line joins its beginning with a later line; the size is then wrong.
std::optional<PodLogFrames::Frame> PodLogFrames::frame_of(std::string_view line) {
  Frame frame{line.front(), 0, {}};
  std::size_t size = 0;
  const char* end = line.data() + line.size();
  const auto place = std::from_chars(line.data() + 1, end, frame.place);
  if (place.ec != std::errc()) return std::nullopt;
  if (line.front() == '.') return place.ptr == end ? std::optional(frame) : std::nullopt;
  if (place.ptr == end || *place.ptr != ' ') return std::nullopt;
  const auto length = std::from_chars(place.ptr + 1, end, size);
  if (length.ec != std::errc() || length.ptr == end || *length.ptr != ' ') return std::nullopt;
  frame.text = line.substr(static_cast<std::size_t>(length.ptr + 1 - line.data()));
  return frame.text.size() == size ? std::optional(frame) : std::nullopt;
}

namespace {

/// Returns false for lines of the container runtime, or of a program that ran before the agent.
bool begins_as_frame(std::string_view line) {
  return line.size() >= 2 && std::string_view("oOeEuw.").find(line.front()) != line.npos &&
         line[1] >= '0' && line[1] <= '9';
}

}  // namespace

void PodLogFrames::feed(std::string_view bytes) {
  lines_.feed(bytes, [this](std::string_view line) { take_line(line); });
}

void PodLogFrames::take_line(std::string_view line) {
  const auto space = line.find(' ');
  const auto time = parse_time(line.substr(0, space));
  if (!time ||
      space == line.npos) {  // A message of the server itself, such as `failed to watch file`.
    on_bytes_(true, std::string(line) + "\n");
    return;
  }
  const bool is_new = !last_ || *time > *last_;
  if (is_new) last_ = time;
  const auto rest = line.substr(space + 1);
  if (!begins_as_frame(rest)) {
    if (is_new && reported_ == 0)
      on_bytes_(
          true,
          std::string(rest) +
              "\n");  // Later it is the rest of a frame whose beginning was in a deleted file.
  } else if (const auto frame = frame_of(rest); frame && frame->place >= reported_) {
    fetch_until(frame->place);
    report(*frame, rest.size() + 1);
  }
}

/// Reports a frame whose offset is the current one. @param size bytes of its line
void PodLogFrames::report(const Frame& frame, std::size_t size) {
  reported_ += size;
  if (frame.kind == '.') {
    ended_ = true;
    return;
  }
  has_begun_ = true;
  std::string text(frame.text);
  if (frame.kind == 'u' || frame.kind == 'w') {
    (frame.kind == 'u' ? usage_ : waits_) = std::move(text);
    return;
  }
  waits_.clear();
  if (frame.kind == 'o' || frame.kind == 'e') text += '\n';
  on_bytes_(frame.kind == 'e' || frame.kind == 'E', text);
}

void PodLogFrames::fetch_until(std::uint64_t place) {
  core::Lines lines;
  for (auto from = reported_; copy_ && from < place;) {
    const auto bytes =
        copy_(from, static_cast<std::size_t>(std::min<std::uint64_t>(place - from, max_fetch)));
    // No more bytes, or a file that the agent has not written: a step can put a file of any size
    // and content there.
    if (bytes.empty() || from - reported_ > max_fetch) break;
    from += bytes.size();
    lines.feed(bytes, [this](std::string_view line) {
      const auto frame = begins_as_frame(line) ? frame_of(line) : std::nullopt;
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
