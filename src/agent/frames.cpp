#include "agent/frames.hpp"

#include <algorithm>
#include <charconv>
#include <string>

namespace pipeline::agent {

bool begins_as_frame(std::string_view line) {
  return line.size() >= 2 && std::string_view("oOeEuwa.").find(line.front()) != line.npos &&
         line[1] >= '0' && line[1] <= '9';
}

std::optional<Frame> parse_frame(std::string_view line) {
  if (!begins_as_frame(line)) return std::nullopt;
  Frame frame{line.front(), 0, {}};
  std::size_t size = 0;
  const char* end = line.data() + line.size();
  const auto offset = std::from_chars(line.data() + 1, end, frame.offset);
  if (offset.ec != std::errc()) return std::nullopt;
  if (line.front() == '.') return offset.ptr == end ? std::optional(frame) : std::nullopt;
  if (offset.ptr == end || *offset.ptr != ' ') return std::nullopt;
  const auto length = std::from_chars(offset.ptr + 1, end, size);
  if (length.ec != std::errc() || length.ptr == end || *length.ptr != ' ') return std::nullopt;
  frame.text = line.substr(static_cast<std::size_t>(length.ptr + 1 - line.data()));
  return frame.text.size() == size ? std::optional(frame) : std::nullopt;
}

std::chrono::milliseconds progress_age(const Frame& frame) {
  constexpr unsigned max_age = 3'600'000;  // A step can write any number.
  unsigned age = 0;
  if (frame.kind == 'a')
    std::from_chars(frame.text.data(), frame.text.data() + frame.text.size(), age);
  return std::chrono::milliseconds(std::min(age, max_age));
}

void pass_output(const Frame& frame, const std::function<void(bool, std::string_view)>& on_bytes) {
  const bool is_line = frame.kind == 'o' || frame.kind == 'e';
  if (!is_line && frame.kind != 'O' && frame.kind != 'E') return;
  std::string text(frame.text);
  if (is_line) text += '\n';
  on_bytes(frame.kind == 'e' || frame.kind == 'E', text);
}

}  // namespace pipeline::agent
