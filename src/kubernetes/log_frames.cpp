#include "kubernetes/log_frames.hpp"

#include "kubernetes/time.hpp"

namespace pipeline::kubernetes {

void LogFrames::restart() {
  lines_.clear();
  again_ = 0;
}

void LogFrames::feed(std::string_view bytes) {
  lines_.feed(bytes, [this](std::string_view line) { take_line(line); });
}

void LogFrames::take_line(std::string_view line) {
  const auto space = line.find(' ');
  const auto time = parse_time(line.substr(0, space));
  if (!time || space == line.npos) {  // of the server itself, such as `failed to watch file`
    on_bytes_(true, std::string(line) + "\n");
    return;
  }
  if (last_ && *time < *last_) return;
  if (last_ && *time == *last_) {
    if (++again_ <= told_at_last_) return;
    ++told_at_last_;
  } else {
    last_ = time;
    told_at_last_ = again_ = 1;
  }
  const auto frame = line.substr(space + 1);
  if (frame == ".") {
    ended_ = true;
    return;
  }
  const char kind = frame.empty() ? ' ' : frame.front();
  const bool framed = frame.size() >= 2 && frame[1] == ' ' && std::string_view("oOeE").find(kind) != std::string_view::npos;
  if (!framed) {  // of something that ran before the agent
    on_bytes_(true, std::string(frame) + "\n");
    return;
  }
  std::string text(frame.substr(2));
  if (kind == 'o' || kind == 'e') text += '\n';
  on_bytes_(kind == 'e' || kind == 'E', text);
}

}  // namespace pipeline::kubernetes
