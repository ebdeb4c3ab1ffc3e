// `pipe logs`: prints the output of a step, or of all steps of a run.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "core/bounded_json.hpp"
#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/json_member.hpp"
#include "core/lines.hpp"
#include "driver/drivers.hpp"
#include "driver/growing_file.hpp"
#include "driver/origin.hpp"
#include "driver/recorded_attempt.hpp"
#include "driver/recorded_steps.hpp"
#include "driver/session.hpp"
#include "model/instance.hpp"
#include "model/structured_line.hpp"
#include "orchestrators/rank_lines.hpp"

namespace pipeline::cli {
namespace {

constexpr int log_poll_ms = 200;

/// The form in which the lines of one log are shown.
struct LogForm {
  bool partial = false;  ///< Show lines before they end, such as those of a progress bar.
  bool named = false;    ///< Put the step's name before each line.
};

/// Prints one log: unchanged, or line by line for a terminal or as JSON.
class LogPrinter {
 public:
  LogPrinter(const Context& context, std::string step, unsigned attempt, LogForm form)
      : context_(context),
        step_(std::move(step)),
        attempt_(attempt),
        prefix_(form.named ? "[" + for_terminal(step_) + "] " : ""),
        shows_partial_(form.partial && !context.options().json && !context.options().logs.rank) {}

  /// Prints the lines that the next bytes of the log complete.
  void operator()(std::string_view bytes) {
    std::string text;
    lines_.feed(bytes, [&](std::string_view whole) {
      if (const auto wanted = wanted_text(whole)) text += unshown(*wanted, "\n");
    });
    if (shows_partial_) text += partial();
    if (!text.empty()) context_.write(text);
  }
  /// Returns true if the log has lines, but none of the rank that is wanted.
  bool lacks_rank() const { return has_others_ && !has_rank_; }
  /// Prints a last line without an end.
  void finish() {
    if (lines_.rest().empty()) return;
    const auto rest = wanted_text(lines_.rest());
    if (!rest) return;
    const bool as_it_is = !context_.options().json && !context_.out().live && prefix_.empty();
    context_.write(unshown(*rest, as_it_is ? "" : "\n"));
    lines_.clear();
  }

 private:
  /// Returns the line. With `--rank`, returns a line of that rank without its prefix, and nothing
  /// for lines of other ranks.
  std::optional<std::string_view> wanted_text(std::string_view whole) {
    const auto& wanted = context_.options().logs.rank;
    if (!wanted) return whole;
    const auto found = orchestrators::rank_of_line(whole);
    const bool is_wanted = found && found->first == *wanted;
    has_rank_ |= is_wanted;
    has_others_ |= !is_wanted;
    return is_wanted ? std::optional(found->second) : std::nullopt;
  }

  /// Returns the text for an unfinished line: on a terminal, a sequence that rewrites the line;
  /// otherwise the new bytes. A line that may turn out to be structured data (`@pipe ...`) is held
  /// back.
  std::string partial() {
    const std::string& rest = lines_.rest();
    if (rest.size() == shown_ || rest.starts_with('@')) return {};
    const auto before = std::exchange(shown_, rest.size());
    return context_.out().live ? "\r\x1b[K" + clip(rest, terminal_size(STDOUT_FILENO).columns - 1)
                               : rest.substr(before);
  }

  /// Returns the line, or the part of it that has not been printed.
  std::string unshown(std::string_view whole, std::string_view end) {
    const auto shown = std::exchange(shown_, 0);
    if (shown == 0) return line(whole, end);
    return context_.out().live ? "\r\x1b[K" + line(whole, end)
                               : std::string(whole.substr(shown)).append(end);
  }

  std::string line(std::string_view text, std::string_view end) const {
    if (!context_.options().json)
      return prefix_ + (context_.out().live
                            ? for_terminal(model::shown_line(text), context_.out().colours)
                            : model::shown_line(text))
                           .append(end);
    nlohmann::json object{
        {"step", step_}, {"attempt", attempt_}, {"line", model::shown_line(text)}};
    if (auto structured = model::parse_structured(text)) object["data"] = std::move(*structured);
    return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  }
  const Context& context_;
  std::string step_;
  unsigned attempt_;
  std::string prefix_;
  bool shows_partial_;
  /// With `--rank`: lines of that rank, and other lines, were seen.
  bool has_rank_ = false, has_others_ = false;
  core::Lines lines_;
  std::size_t shown_ = 0;  ///< Bytes of the unfinished line that have been printed.
};

bool is_run_in_progress(driver::Drivers& drivers, store::RunStore& store,
                        const std::string& run_id) {
  auto run = store.runs().find(run_id);
  return run && drivers.goes_on(*run);
}

bool has_ended(const store::StepRecord& step) {
  return step.status != StepStatus::pending && step.status != StepStatus::running;
}

/// Returns true if the run's pipeline has given the step several processes.
bool has_declared_ranks(store::RunStore& store, const store::AttemptRecord& attempt) {
  const auto text = store.key_values().find(store::declared_kind, attempt.run).value_or("{}");
  const auto all = core::parse_json(text);
  const auto* step = core::member(all, std::string(model::base_name(attempt.step)));
  return !step || core::member(*step, "ranks");
}

/// Throws InputError if the attempt has ended and had no such rank.
/// @param lacks_lines true if its log has lines, but none of this rank
void check_rank(store::RunStore& store, const store::AttemptRecord& attempt, unsigned rank,
                bool lacks_lines) {
  const auto all = store.attempts().list(attempt.run, attempt.step);
  const auto now = std::ranges::find(all, attempt.number, &store::AttemptRecord::number);
  if (now == all.end() || now->ended == WallTime{}) return;
  const auto ranks = store.attempts().tasks(*now).size();
  const auto lacks = "'" + attempt.step + "' has no rank " + std::to_string(rank) + ": ";
  if (ranks > 1 && rank >= ranks)
    throw core::InputError(lacks + "its ranks are 0 to " + std::to_string(ranks - 1));
  if (ranks == 1 && (rank > 0 || lacks_lines) && !has_declared_ranks(store, attempt))
    throw core::InputError(lacks + "it is one process", "leave out --rank");
}

/// Prints the log of an attempt; with `follow`, until the attempt ends.
void print_attempt(const Context& context, driver::Drivers& drivers, store::RunStore& store,
                   const store::AttemptRecord& attempt, bool follow) {
  LogPrinter printer(context, attempt.step, attempt.number, {.partial = follow});
  driver::GrowingFile file(store.paths().log_file(attempt.log));
  const auto is_over = [&] {
    if (!is_run_in_progress(drivers, store, attempt.run)) return true;
    const auto all = store.attempts().list(attempt.run, attempt.step);
    const auto now = std::ranges::find(all, attempt.number, &store::AttemptRecord::number);
    return now == all.end() || now->ended != WallTime{};
  };
  for (bool over = !follow || is_over();; over = is_over()) {
    file.read(printer);
    if (over) break;
    file.wait();
  }
  printer.finish();
  if (const auto& rank = context.options().logs.rank)
    check_rank(store, attempt, *rank, printer.lacks_rank());
}

/// Prints one attempt after the other, from this number on, until the step has ended.
void follow_step(const Context& context, driver::Drivers& drivers, store::RunStore& store,
                 const store::StepRecord& step, unsigned number) {
  for (;;) {
    const bool over =
        !is_run_in_progress(drivers, store, step.run) ||
        has_ended(driver::recorded_step(store, *store.runs().find(step.run), step.name));
    auto attempts = store.attempts().list(step.run, step.name);
    std::erase_if(attempts,
                  [&](const store::AttemptRecord& attempt) { return attempt.number < number; });
    for (const auto& attempt : attempts) {
      print_attempt(context, drivers, store, attempt, /*follow=*/true);
      number = attempt.number + 1;
    }
    if (over) return;
    if (attempts.empty()) ::poll(nullptr, 0, log_poll_ms);  // Another process starts the step.
  }
}

/// A log that is printed together with others.
struct OpenLog {
  OpenLog(const Context& context, const store::AttemptRecord& attempt,
          const std::filesystem::path& path)
      : printer(context, attempt.step, attempt.number, {.named = true}), file(path) {}

  LogPrinter printer;
  driver::GrowingFile file;
};

/// Prints the logs of all steps of a run. The logs of ended steps are printed one after the other.
/// With `follow`, the lines of running steps are printed as they arrive, until the run ends.
void print_all(const Context& context, driver::Drivers& drivers, store::RunStore& store,
               const std::string& run, bool follow) {
  std::map<std::string, OpenLog> open;      // Keyed by the file's name.
  std::map<std::string, unsigned> printed;  // The last attempt of each step that has been printed.
  std::set<std::string> ended;
  for (;;) {
    const bool is_last = !follow || !is_run_in_progress(drivers, store, run);
    auto steps = store.runs().steps(run);
    std::ranges::stable_sort(steps, {}, &store::StepRecord::started);
    for (const auto& step : steps) {
      if (step.status == StepStatus::pending || ended.contains(step.name)) continue;
      for (const auto& attempt : store.attempts().list(run, step.name)) {
        if (attempt.number <= printed[step.name]) continue;
        const auto path = store.paths().log_file(attempt.log);
        auto& log = open.try_emplace(attempt.log, context, attempt, path).first->second;
        log.file.read(log.printer);
        if (!is_last && attempt.ended == WallTime{}) continue;
        log.printer.finish();
        open.erase(attempt.log);
        printed[step.name] = attempt.number;
      }
      if (has_ended(step)) ended.insert(step.name);
    }
    if (is_last) return;
    ::poll(nullptr, 0, log_poll_ms);
  }
}

core::ExitCode print_run(const Context& context, driver::Drivers& drivers, store::RunStore& store,
                         const store::RunRecord& run) {
  const auto& options = context.options();
  if (options.attempt != 0)
    throw core::InputError("--attempt needs a STEP",
                           "`pipe logs RUN` prints all attempts of all steps");
  print_all(context, drivers, store, run.id, options.logs.follow);
  const auto steps = store.runs().steps(run.id);
  const auto reused = std::ranges::count(steps, StepStatus::cached, &store::StepRecord::status);
  if (reused > 0)
    context.note("note: " + counted(static_cast<std::size_t>(reused), "step") +
                 (reused == 1 ? " was" : " were") +
                 " reused: `pipe logs RUN STEP` prints its earlier output");
  return core::ExitCode::ok;
}

}  // namespace

core::ExitCode logs_command(Context& context) {
  const auto& options = context.options();
  auto& store = context.existing_store();
  driver::Drivers drivers(context.driver_context(), store);
  const auto run = driver::find_run(context, context.options().run, drivers, store);
  if (options.step.empty()) return print_run(context, drivers, store, run);
  auto step = driver::recorded_step(store, run, options.step);
  std::string origin = step.run;
  if (step.status == StepStatus::cached) {
    origin = step.reused_from;
    if (driver::is_from_remote_cache(origin))
      throw core::InputError("'" + step.name + "' was reused from " + origin +
                             ": its log is only on the machine that ran it, where `pipe logs` "
                             "shows it");
    context.note("note: '" + step.name + "' was reused; this is its output of run " + origin);
  }
  const auto attempts = store.attempts().list(origin, step.name);
  if (options.logs.follow && step.status != StepStatus::cached && options.attempt == 0) {
    follow_step(context, drivers, store, step, attempts.empty() ? 1 : attempts.back().number);
    return core::ExitCode::ok;
  }
  if (attempts.empty()) {
    if (step.status == StepStatus::cached)
      throw core::InputError("the log of '" + step.name + "' is gone: run " + origin +
                             ", which it was reused from, has been removed");
    context.note("note: '" + step.name + "' has not been started" +
                 (step.message.empty() ? "" : ": " + step.message));
    return core::ExitCode::ok;
  }
  print_attempt(context, drivers, store, driver::attempt_numbered(attempts, options.attempt),
                options.logs.follow);
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
