#include "engine/run/questions.hpp"

#include <utility>

#include "async/sleep.hpp"
#include "core/diagnostic.hpp"
#include "core/quantity.hpp"
#include "engine/clock.hpp"
#include "store/questions.hpp"

namespace pipeline::engine {

async::Task<std::optional<Failure>> ask_person(const RunContext& context, const StepSpec& step,
                                               core::CancelSource& stop) {
  if (step.wait.empty()) co_return std::nullopt;
  auto& store = context.services.store;
  const auto& run = context.options.run_id;
  auto question = store::questions_of(store, run)[step.name];
  const bool is_new = question.text != step.wait;
  // The pipeline file may have changed before the run was resumed.
  if (is_new) question = {};
  if (question.answer.empty()) {
    if (is_new)
      store::put_question(store, run, step.name, {.text = step.wait, .asked = wall_now()});
    context.events.emit(event::StepWaits{step.name, "an answer: " + *step.wait});
    context.events.emit(event::Notice{
        step.name, "`pipe answer " + run + " " + step.name + " yes` answers it, or `no`"});
    const auto& notify = context.options.notify_of_question;
    if (is_new && notify) context.tasks.spawn(notify(step.name, step.wait));
  }
  for (std::int64_t seen = -1; question.answer.empty() && stop.level() == core::StopLevel::none;) {
    co_await async::sleep(poll_interval, &stop);
    if (const auto version = store.data_version(); std::exchange(seen, version) != version)
      question = store::questions_of(store, run)[step.name];
  }
  // Anyone with the address of the question may write the name and the note, in which a carriage
  // return would overwrite earlier words on a terminal.
  const auto by = " by " + core::printable(question.who) + " at " +
                  core::format_time(question.answered) +
                  (question.note.empty() ? "" : ": " + core::printable(question.note));
  if (question.answer == "yes") context.events.emit(event::Notice{step.name, "approved" + by});
  if (question.answer != "no") co_return std::nullopt;
  co_return Failure{FailureKind::not_started,
                    "was rejected" + by,
                    {"a new run asks again; `pipe resume` does not"},
                    {}};
}

}  // namespace pipeline::engine
