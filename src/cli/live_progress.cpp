// Shows the current activities in the lower lines of the terminal; other lines scroll by above
// them. Each update is one write, so that nothing flickers.
#include "cli/progress.hpp"

#include <algorithm>

#include "core/quantity.hpp"

namespace pipeline::cli {
namespace {

/// The time and the screen for which live lines are drawn.
struct Frame {
  driver::SteadyTime now;
  TerminalSize size;
};

/// Returns whole seconds, so that a line changes once a second.
std::string elapsed(driver::SteadyTime since, driver::SteadyTime now) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now - since);
  return seconds < std::chrono::minutes(1) ? std::to_string(seconds.count()) + "s"
                                           : core::format_duration(seconds);
}

class LiveProgress final : public Progress {
 public:
  explicit LiveProgress(ProgressIo io) : Progress(std::move(io)) {}

  void say(std::string_view text) override {
    above_ += std::string(text) + "\n";
    tick();
  }

  void tick() override {
    if (closed_) return;
    auto lines = model_.finished ? std::vector<std::string>{} : live_lines();
    if (above_.empty() && lines == shown_) return;
    io_.write(erase() + std::exchange(above_, {}) + drawn(lines));
    shown_ = std::move(lines);
  }

  void close() override {
    if (closed_) return;
    io_.write(erase() + std::exchange(above_, {}));
    closed_ = true;
  }

 private:
  void show(const Event& event) override {
    above_ +=
        event_lines(event, io_.paint, {.metrics = io_.is_verbose, .values = values_of(event)});
    // A step with much output must not fill the memory, or delay its own lines.
    if (above_.size() > 1 << 16) tick();
  }

  /// Returns the sequence that erases the shown lines. The sequence begins with a carriage return,
  /// because a terminal may have shown `^C` at the cursor.
  std::string erase() const {
    return shown_.empty() ? "" : "\r\x1b[" + std::to_string(shown_.size()) + "A\x1b[J";
  }
  static std::string drawn(const std::vector<std::string>& lines) {
    std::string text;
    for (const auto& line : lines) text += line + "\n";
    return text;
  }

  std::vector<std::string> live_lines() const {
    const Frame frame{io_.now(), io_.size()};
    std::vector<std::string> lines;
    if (!model_.run.empty()) lines.push_back(heading(frame));
    const std::size_t room = std::max(4u, frame.size.rows / 2) - 1;
    std::vector<std::string> below;
    for (const auto& build : model_.builds)
      below.push_back(
          activity(frame, {shorten_digests(build.image), Colour::blue}, build.text, build.since));
    for (const auto& group : model_.groups)
      if (group.began != driver::SteadyTime{} && group.done() < group.total)
        below.push_back(activity(frame, {group.name, Colour::cyan}, group.text(), group.began));
    for (const auto& step : model_.steps) {
      if (step.group) continue;
      if (step.status == StepStatus::running) {
        below.push_back(activity(frame, {step.name, Colour::cyan}, doing(step), step.since));
      } else if (step.status == StepStatus::pending && !step.waits_for.empty()) {
        below.push_back("  " +
                        clip(step.name + "  waits for " + *step.waits_for, frame.size.columns - 3));
      }
    }
    const std::size_t shown = below.size() > room ? room - 1 : below.size();
    std::move(below.begin(), below.begin() + static_cast<std::ptrdiff_t>(shown),
              std::back_inserter(lines));
    if (shown < below.size())
      lines.push_back(
          io_.paint(Colour::dim, "  and " + std::to_string(below.size() - shown) + " more"));
    return lines;
  }

  static std::string doing(const driver::StepView& step) {
    if (!step.row.empty()) return step.row;
    const std::string attempt =
        step.attempts > 1 ? "attempt " + std::to_string(step.attempts) : "running";
    const auto values = step.values_text();
    if (values.empty()) return attempt;
    return (step.attempts > 1 ? attempt + ", " : "") + values;
  }

  std::string heading(const Frame& frame) const {
    std::string text = model_.pipeline + "  " + std::to_string(model_.done()) + "/" +
                       std::to_string(model_.total) + " done";
    const auto add = [&](std::size_t count, const char* what) {
      if (count) text += ", " + std::to_string(count) + " " + what;
    };
    add(model_.count(StepStatus::running), "running");
    add(model_.builds.size(), "preparing");
    add(model_.count(StepStatus::cached), "reused");
    add(model_.count(StepStatus::failed), "failed");
    return io_.paint(Colour::bold,
                     clip(text + "  " + elapsed(model_.began, frame.now), frame.size.columns - 1));
  }

  /// Returns `  NAME  TEXT      TIME`, with the time at the right edge.
  std::string activity(const Frame& frame, const Table::Cell& name, std::string_view text,
                       driver::SteadyTime since) const {
    const std::string time = elapsed(since, frame.now);
    constexpr unsigned min_columns = 16, blanks = 4;
    const unsigned room =
        std::max(min_columns, frame.size.columns - 1) - blanks - static_cast<unsigned>(time.size());
    const std::string shown_name = clip(name.text, room / 2);
    const unsigned rest = room - display_width(shown_name);
    const std::string shown_text = rest > 3 ? clip(text, rest - 2) : "";
    return "  " + io_.paint(name.colour, shown_name) + "  " + shown_text +
           std::string(rest - display_width(shown_text), ' ') + time;
  }

  std::string above_;               ///< Permanent lines that are not written yet.
  std::vector<std::string> shown_;  ///< The live lines on the screen.
  bool closed_ = false;
};

}  // namespace

std::unique_ptr<Progress> live_progress(ProgressIo io) {
  return std::make_unique<LiveProgress>(std::move(io));
}

}  // namespace pipeline::cli
