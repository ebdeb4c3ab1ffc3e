#include "cli/progress.hpp"

#include <algorithm>
#include <map>

#include "cli/attempt_tables.hpp"
#include "core/joined.hpp"
#include "core/quantity.hpp"
#include "driver/origin.hpp"
#include "model/event_json.hpp"
#include "model/instance.hpp"
#include "model/structured_line.hpp"

namespace pipeline::cli {
namespace {

/// Returns `[NAME] `, with which a line about a step or an image begins.
std::string prefix_of(const Paint& paint, std::string_view name, Colour colour = Colour::cyan) {
  return paint(colour, "[" + for_terminal(name) + "]") + " ";
}

/// Returns the first names, and the number of the others.
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t shown = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), shown); ++i)
    text += (i ? ", " : "") + names[i];
  if (names.size() > shown) text += " and " + counted(names.size() - shown, "more step");
  return text;
}

std::string failure_lines(const Failure& failure, const Paint& paint) {
  std::string text = for_terminal(failure.message) + "\n";
  for (const auto& hint : failure.hints)
    text += "  " + paint(Colour::cyan, "hint: ") + for_terminal(hint) + "\n";
  return text;
}

/// Returns the lines of one event.
struct LinesOfEvent {
  const Paint& paint;
  const LineDetail& detail;

  std::string operator()(const event::RunStarted& e) const {
    return paint(Colour::bold, e.pipeline) + ": run " + e.run + ", " + counted(e.steps, "step") +
           ", orchestrator " + e.orchestrator + "\n";
  }
  std::string operator()(const event::BuildStarted& e) const {
    std::string text = prefix_of(paint, shorten_digests(e.image), Colour::blue) + "preparing";
    if (!e.steps.empty()) text += " for " + some_of(e.steps);
    if (!e.reason.empty()) text += ": " + for_terminal(e.reason);
    return text + "\n";
  }
  std::string operator()(const event::BuildProgress& e) const {
    return detail.builds ? prefix_of(paint, shorten_digests(e.image), Colour::blue) +
                               for_terminal(e.text, paint.on) + "\n"
                         : "";
  }
  std::string operator()(const event::BuildFinished& e) const {
    const std::string name = prefix_of(paint, shorten_digests(e.image), Colour::blue);
    const std::string after = " after " + core::format_duration(e.took);
    if (!e.failure) return name + paint(Colour::green, "ready") + after + "\n";
    if (e.failure->kind == FailureKind::cancelled)
      return name + paint(Colour::yellow, "stopped") + after + "\n";
    return name + paint(Colour::red, "failed") + after + ": " + failure_lines(*e.failure, paint);
  }
  std::string operator()(const event::StepStarted& e) const {
    std::string text = e.attempt > 1 ? "started, attempt " + std::to_string(e.attempt) : "started";
    const bool are_slices =
        std::ranges::all_of(e.gpus, [](const event::Gpu& gpu) { return gpu.slice.has_value(); });
    if (!e.gpus.empty())
      text += std::string(" on ") + (are_slices ? "MIG device" : "GPU") +
              (e.gpus.size() > 1 ? "s " : " ") + core::joined(e.gpus, ", ", device_text);
    return prefix_of(paint, e.step) + text + "\n";
  }
  std::string operator()(const event::StepLog& e) const {
    if (!detail.metrics && model::LastValues().take(e.line)) return "";
    const auto name = e.rank ? e.step + "/" + std::to_string(*e.rank) : e.step;
    return prefix_of(paint, name, e.stream == Stream::err ? Colour::yellow : Colour::cyan) +
           for_terminal(model::shown_line(e.line), paint.on) + "\n";
  }
  // A live display shows progress itself; others print the line once it is finished.
  std::string operator()(const event::StepProgress&) const { return ""; }
  std::string operator()(const event::StepRetried& e) const {
    std::string when = e.delay.count() ? "in " + core::format_duration(e.delay) : "at once";
    if (e.memory) when += " with " + core::format_bytes(*e.memory);
    return prefix_of(paint, e.step) +
           paint(Colour::yellow, "attempt " + std::to_string(e.attempt) + " failed") +
           ", next one " + when + ": " + failure_lines(e.failure, paint);
  }
  std::string operator()(const event::StepWaits& e) const {
    return detail.builds ? prefix_of(paint, e.step) + "waits for " + for_terminal(e.reason) + "\n"
                         : "";
  }
  std::string operator()(const event::StepFinished& e) const {
    const std::string name = prefix_of(paint, e.step);
    const std::string after = " after " + core::format_duration(e.took) +
                              (e.attempts > 1 ? " and " + counted(e.attempts, "attempt") : "");
    switch (e.status) {
      case StepStatus::succeeded:
        return name + paint(Colour::green, "succeeded") + after +
               (detail.values.empty() ? "" : ": " + for_terminal(detail.values)) + "\n";
      case StepStatus::cached:
        return name + "reused from " + for_terminal(driver::origin_of(e.reused_from)) + "\n";
      case StepStatus::skipped:
        return name + paint(Colour::yellow, "skipped") + ": " + for_terminal(e.reason) + "\n";
      case StepStatus::cancelled:
        return name + paint(Colour::yellow, "cancelled") +
               (e.attempts == 0 && !e.reason.empty() ? ": " + for_terminal(e.reason) : after) +
               "\n";
      default:
        return name + paint(Colour::red, "failed") + after +
               (e.failure ? ": " + failure_lines(*e.failure, paint) : "\n");
    }
  }
  std::string operator()(const event::Notice& e) const {
    return (e.step.empty() ? "" : prefix_of(paint, e.step)) + paint(Colour::yellow, "note: ") +
           for_terminal(e.text) + "\n";
  }
  std::string operator()(const event::StepExpanded& e) const {
    if (e.round) return prefix_of(paint, e.step) + "round " + std::to_string(*e.round) + "\n";
    return prefix_of(paint, e.step) + "is " + counted(e.instances, "step") + " now\n";
  }
  std::string operator()(const event::RunFinished&) const { return ""; }  // The summary shows it.
};

/// Returns the step that an event is about, or null.
const std::string* step_of(const Event& event) {
  return std::visit(
      [](const auto& e) -> const std::string* {
        if constexpr (requires { e.step; })
          return &e.step;
        else
          return nullptr;
      },
      event);
}

class PlainProgress final : public Progress {
 public:
  explicit PlainProgress(ProgressIo io) : Progress(std::move(io)) {}
  void say(std::string_view text) override { io_.write(std::string(text) + "\n"); }

 private:
  void show(const Event& event) override {
    const LineDetail detail{.builds = true, .metrics = io_.is_verbose, .values = values_of(event)};
    if (const auto text = event_lines(event, io_.paint, detail); !text.empty()) io_.write(text);
    const auto* log = std::get_if<event::StepLog>(&event);
    if (log && !io_.is_verbose) show_values(model_.step(log->step));
  }
  /// Shows the values that a step reports, at most once in `pause`.
  void show_values(const driver::StepView& step) {
    constexpr std::chrono::seconds pause{30};
    const auto values = step.values_text();
    if (values.empty() ||
        io_.now() - shown_at_.try_emplace(step.name, step.since).first->second < pause)
      return;
    shown_at_[step.name] = io_.now();
    io_.write(prefix_of(io_.paint, step.name) + for_terminal(values) + "\n");
  }
  /// Shows a line at each tenth of the instances.
  void show_group(const driver::GroupView& group) override {
    const auto tenth = group.done() * 10 / group.total;
    if (std::exchange(tenths_[group.name], tenth) != tenth)
      io_.write(prefix_of(io_.paint, group.name) + group.text() + "\n");
  }
  std::map<std::string, std::size_t> tenths_;
  /// When the values of each step were shown last.
  std::map<std::string, driver::SteadyTime> shown_at_;
};

class QuietProgress final : public Progress {
 public:
  explicit QuietProgress(ProgressIo io) : Progress(std::move(io), ShownEvents::all) {}
  void say(std::string_view text) override { io_.write(std::string(text) + "\n"); }

 private:
  void show(const Event&) override {}
};

class JsonProgress final : public Progress {
 public:
  explicit JsonProgress(ProgressIo io) : Progress(std::move(io), ShownEvents::all) {}
  void say(std::string_view) override {}

 private:
  void show(const Event& event) override { io_.write(model::to_json_line(event) + "\n"); }
};

}  // namespace

std::string event_lines(const Event& event, const Paint& paint, const LineDetail& detail) {
  return std::visit(LinesOfEvent{paint, detail}, event);
}

std::string Progress::values_of(const Event& event) {
  const auto* finished = std::get_if<event::StepFinished>(&event);
  return finished ? model_.step(finished->step).values_text() : "";
}

void Progress::emit(const Event& event, driver::SteadyTime at) {
  if (record_) record_(event);
  model_.apply(event, at);
  if (shown_events_ == ShownEvents::all)
    show(event);
  else if (is_shown(event))
    show_once(event);
  if (const auto* finished = std::get_if<event::StepFinished>(&event);
      finished && shown_events_ != ShownEvents::all)
    if (const auto* group = model_.group_of(finished->step)) show_group(*group);
}

/// Shows an event. Among instances of a step that fail in the same way, only the first failure is
/// shown in full.
void Progress::show_once(const Event& event) {
  const auto* finished = std::get_if<event::StepFinished>(&event);
  if (!finished || !finished->failure) return show(event);
  const std::string base(model::base_name(finished->step));
  if (base == finished->step) return show(event);
  const auto [first, is_new] =
      failed_.try_emplace(base + "\n" + finished->failure->message, finished->step);
  if (is_new) return show(event);
  if (model_.group_of(finished->step)) return;  // Instances of a group are counted.
  auto again = *finished;
  again.failure =
      Failure{finished->failure->kind, "the same failure as that of " + first->second, {}, {}};
  show(again);
}

/// Returns false for events that are left out because there are too many of their kind.
bool Progress::is_shown(const Event& event) {
  if (std::holds_alternative<event::StepExpanded>(event)) return true;
  constexpr std::size_t max_failures = 10;
  const auto* step = step_of(event);
  const auto* finished = std::get_if<event::StepFinished>(&event);
  if (auto* group = step ? model_.group_of(*step) : nullptr) {
    const bool is_trouble = std::holds_alternative<event::StepRetried>(event) ||
                            std::holds_alternative<event::Notice>(event) ||
                            (finished && finished->status == StepStatus::failed);
    return is_trouble && group->reported++ < max_failures;
  }
  return !finished || finished->status != StepStatus::cached || model_.total <= many_steps;
}

std::unique_ptr<Progress> plain_progress(ProgressIo io) {
  return std::make_unique<PlainProgress>(std::move(io));
}
std::unique_ptr<Progress> quiet_progress(ProgressIo io) {
  return std::make_unique<QuietProgress>(std::move(io));
}
std::unique_ptr<Progress> json_progress(ProgressIo io) {
  return std::make_unique<JsonProgress>(std::move(io));
}

}  // namespace pipeline::cli
