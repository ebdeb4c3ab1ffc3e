// `pipe attach`: shows a detached run as `pipe run` shows its own.
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <map>
#include <set>

#include "cli/commands.hpp"
#include "cli/display.hpp"
#include "cli/summary.hpp"
#include "core/bounded_json.hpp"
#include "core/diagnostic.hpp"
#include "core/lines.hpp"
#include "driver/drivers.hpp"
#include "driver/event_log.hpp"
#include "driver/growing_file.hpp"
#include "model/event_json.hpp"

namespace pipeline::cli {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr auto poll_interval = 100ms;
/// Maximum time between the record of a run and its first event.
constexpr auto start_timeout = 5s;
/// The number of lines of earlier output that are shown first.
constexpr std::size_t lines_before = 10;
/// The folder of events, which may have many files, is listed at every 20th poll.
constexpr unsigned polls_per_listing = 20;

/// Reads the lines that an attempt prints from its log.
class AttemptLog {
 public:
  AttemptLog(const store::RunStore& store, const std::string& run, std::string step,
             unsigned attempt)
      : step_(std::move(step)),
        attempt_(attempt),
        file_(store.paths().log_file(store::log_name(run, step_, attempt))) {}

  void skip_to_last(std::size_t lines) { file_.skip_to_last(lines); }
  /// Calls `use` with the lines since the last call, and with the state of a progress bar.
  void read(const std::function<void(const Event&)>& use) {
    const auto before = lines_.rest().size();
    bool has_lines = false;
    file_.read([&](std::string_view bytes) {
      lines_.feed(bytes, [&](std::string_view line) {
        has_lines = true;
        use(line_event(line));
      });
    });
    const auto& rest = lines_.rest();
    if (rest.find('\r') != rest.npos && (has_lines || rest.size() != before))
      use(event::StepProgress{step_, attempt_, last_state(rest)});
  }
  /// Reads the rest of the log, also a last line without an end.
  void finish(const std::function<void(const Event&)>& use) {
    read([&](const Event& event) {
      if (std::holds_alternative<event::StepLog>(event)) use(event);
    });
    if (!lines_.rest().empty()) use(line_event(lines_.rest()));
    lines_.clear();
  }

 private:
  Event line_event(std::string_view line) const {
    return event::StepLog{step_, attempt_, Stream::out, last_state(line)};
  }
  /// Returns the text of a line that a terminal shows last, when carriage returns overwrite it.
  static std::string last_state(std::string_view line) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    const auto overwritten = line.rfind('\r');
    return std::string(overwritten == line.npos ? line : line.substr(overwritten + 1));
  }

  std::string step_;
  unsigned attempt_;
  driver::GrowingFile file_;
  core::Lines lines_{64 * 1024};
};

/// Reads the events that one driver of a run records.
class EventFile {
 public:
  explicit EventFile(std::filesystem::path path) : file_(std::move(path)) {}
  /// Returns the events since the last call.
  std::vector<json> read() {
    std::vector<json> objects;
    file_.read([&](std::string_view bytes) {
      lines_.feed(bytes, [&](std::string_view line) {
        if (auto object = core::parse_json(line); object.is_object())
          objects.push_back(std::move(object));
      });
    });
    return objects;
  }

 private:
  driver::GrowingFile file_;
  core::Lines lines_;
};

/// Follows a run: its events, and between them the output of its steps.
class Attachment {
 public:
  Attachment(Context& context, store::RunStore& store, const std::string& run)
      : context_(context), store_(store), run_(run), display_(context, SignalHandling::none) {}

  /// Shows the events and output since the last call.
  void update() {
    if (polls_++ % polls_per_listing == 0)
      for (auto& file : driver::event_logs(store_, run_))
        if (files_.insert(file).second) events_.emplace_back(std::move(file));
    for (auto& events : events_)
      for (const auto& object : events.read()) show(object);
    if (!std::exchange(has_begun_, true))  // Shows only the last lines of earlier attempts.
      for (auto& [step, log] : logs_) log.skip_to_last(lines_before);
    for (auto& [step, log] : logs_) log.read(print_);
    display_.progress().tick();
  }
  void finish() {
    for (auto& [step, log] : logs_) log.finish(print_);
    logs_.clear();
    display_.close();
  }
  /// Returns the summary or error with which the last driver ended; null if there is none yet.
  const json& end() const { return end_; }
  const driver::RunModel& model() { return display_.progress().model(); }

 private:
  /// Shows an event that a driver recorded.
  void show(const json& object) {
    const auto kind = object.value("event", "");
    if (kind == "summary" || kind == "error") end_ = object;
    const auto event = model::event_of(object);
    if (!event) return;
    if (std::holds_alternative<event::RunStarted>(*event)) {  // Another driver resumes the run.
      logs_.clear();
      end_ = nullptr;
    }
    if (const auto* retried = std::get_if<event::StepRetried>(&*event)) close_log(retried->step);
    if (const auto* finished = std::get_if<event::StepFinished>(&*event)) close_log(finished->step);
    const WallTime at(std::chrono::milliseconds(object.value("at", std::int64_t{0})));
    const auto age = std::max(WallTime::clock::now() - at, WallTime::clock::duration::zero());
    display_.progress().emit(
        *event, driver::SteadyTime::clock::now() -
                    std::chrono::duration_cast<driver::SteadyTime::clock::duration>(age));
    if (const auto* started = std::get_if<event::StepStarted>(&*event))
      logs_.try_emplace(started->step, store_, run_, started->step, started->attempt);
  }
  /// Closes the log of a step. Output from before this process began is left to `pipe logs`.
  void close_log(const std::string& step) {
    const auto log = logs_.find(step);
    if (log == logs_.end()) return;
    if (has_begun_) log->second.finish(print_);
    logs_.erase(log);
  }

  Context& context_;
  store::RunStore& store_;
  const std::string run_;
  Display display_;
  unsigned polls_ = 0;
  std::set<std::filesystem::path> files_;
  std::vector<EventFile> events_;           ///< In the order in which the drivers began.
  std::map<std::string, AttemptLog> logs_;  ///< Keyed by step.
  bool has_begun_ = false;
  json end_;
  const std::function<void(const Event&)> print_ = [this](const Event& event) {
    if (!context_.options().json) return display_.progress().emit(event);
    auto object = model::to_json(event);
    object.erase("stream");  // Unknown, because a log has the lines of both streams.
    context_.write(object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
  };
};

/// Returns true if nothing reads standard output any more.
bool has_no_reader() {
  pollfd out{STDOUT_FILENO, 0, 0};
  return ::poll(&out, 1, 0) > 0 && (out.revents & (POLLERR | POLLHUP));
}

core::InputError no_events(const Context& context, const store::RunRecord& run) {
  const auto command = [&](const char* words) {
    return "`" + context.options().name + " " + words + " " + run.id;
  };
  if (run.status == RunStatus::running)
    return core::InputError("run " + run.id + " was not begun with --detach: " +
                                driver::name_of(run.driver) + " shows it",
                            command("logs") + " -f` follows the output of its steps");
  return core::InputError("run " + run.id + " was not begun with --detach, and has ended: " +
                              std::string(to_string(run.status)),
                          command("show") + "` shows it");
}

/// Waits for the run's first event. A driver in a cluster may not have started yet.
void await_events(Context& context, driver::Drivers& drivers, store::RunStore& store,
                  store::RunRecord& run, const std::function<bool()>& is_stopped) {
  const auto since = driver::SteadyTime::clock::now();
  while (driver::event_logs(store, run.id).empty()) {
    const bool is_late = driver::SteadyTime::clock::now() - since > start_timeout;
    if (!drivers.goes_on(run) || (is_late && !run.driver.has_lease()))
      throw no_events(context, run);
    if (is_stopped()) return;
  }
}

/// Returns true while a driver that has recorded the run's end may still record its summary.
/// @param since the time from which the run counts as ended
bool may_conclude(const store::RunRecord& run, driver::SteadyTime since) {
  if (run.status == RunStatus::running) return false;
  if (run.driver.process.is_of_this_namespace() && !run.driver.has_lease())
    return run.driver.process.is_alive();
  return driver::SteadyTime::clock::now() - since < start_timeout;
}

/// Returns the end of a run whose driver recorded no summary.
engine::RunSummary outcome_of(const store::RunRecord& run, const driver::RunModel& model) {
  return {.run = run.id,
          .status = run.status,
          .succeeded = model.count(StepStatus::succeeded),
          .cached = model.count(StepStatus::cached),
          .failed = model.count(StepStatus::failed),
          .skipped = model.count(StepStatus::skipped),
          .cancelled = model.count(StepStatus::cancelled)};
}

core::ExitCode show_driver_error(const Context& context, const json& error) {
  if (context.options().json) context.write(error.dump() + "\n");
  context.note("error: " + core::printable(error.value("message", "the driver failed")));
  for (const auto& hint : error.value("advice", std::vector<std::string>()))
    context.note("  hint: " + core::printable(hint));
  return static_cast<core::ExitCode>(
      error.value("exit_code", static_cast<int>(core::ExitCode::environment)));
}

/// Shows the run's end, and returns the run's exit code.
core::ExitCode show_attached_end(Context& context, store::RunStore& store,
                                 const store::RunRecord& run, Attachment& attachment) {
  const auto& end = attachment.end();
  std::optional<driver::RunEnd> shown;
  if (end.is_object()) {
    shown = driver::read_summary(end, context, store);
    if (!shown) return show_driver_error(context, end);
  } else if (run.status == RunStatus::succeeded || run.status == RunStatus::failed) {
    const auto outcome = outcome_of(run, attachment.model());
    shown = {.state = store.folder(),
             .outcome = outcome,
             .results = {},
             .exit_code = driver::exit_code_of(outcome)};
  } else {
    throw core::EnvironmentError(
        "the driver of run " + run.id + " is gone: it was " + driver::name_of(run.driver),
        {"`" + context.options().name + " resume " + run.id + "` continues the run"});
  }
  show_summary(context, attachment.model(), *shown);
  return shown->exit_code;
}

}  // namespace

core::ExitCode attach_command(Context& context) {
  auto& store = context.existing_store();
  driver::Drivers drivers(context.driver_context(), store);
  auto run = driver::find_run(context, context.options().run, drivers, store);
  asio::signal_set signals(context.loop(), SIGINT, SIGTERM, SIGHUP);
  bool is_stopped = false;
  signals.async_wait([&](boost::system::error_code error, int) { is_stopped |= !error; });
  const auto pause = [&] {
    context.loop().restart();
    context.loop().run_for(poll_interval);
    return is_stopped || has_no_reader();
  };
  await_events(context, drivers, store, run, pause);
  Attachment attachment(context, store, run.id);
  std::optional<driver::SteadyTime> over_since;
  for (;;) {
    // The driver is looked up first, so that all that the driver wrote before its end is read
    // below.
    const bool is_over = !drivers.goes_on(run);
    // The driver may have recorded the run's end after `run` was read, and before it ended itself.
    if (is_over) run = store.runs().find(run.id).value_or(run);
    if (is_over && !over_since) over_since = driver::SteadyTime::clock::now();
    const bool is_last = is_over && !may_conclude(run, *over_since);
    attachment.update();
    if (is_last || (is_over && attachment.end().is_object())) break;
    if (pause()) {
      attachment.finish();
      context.note("detached from run " + run.id + ", which continues: `" + context.options().name +
                   " attach " + run.id + "` shows it again, `" + context.options().name +
                   " cancel " + run.id + "` ends it");
      return core::ExitCode::interrupted;
    }
    run = store.runs().find(run.id).value_or(run);
  }
  attachment.finish();
  return show_attached_end(context, store, run, attachment);
}

}  // namespace pipeline::cli
