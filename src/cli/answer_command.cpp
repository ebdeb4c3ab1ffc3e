// `pipe answer`: lists and answers the questions of steps with `wait:`, which wait for a person.
#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/text.hpp"
#include "core/diagnostic.hpp"
#include "core/quantity.hpp"
#include "driver/recorded_steps.hpp"
#include "engine/clock.hpp"
#include "store/questions.hpp"

namespace pipeline::cli {
namespace {

using nlohmann::json;

json question_json(const std::string& step, const store::Question& question) {
  json entry{
      {"step", step}, {"question", question.text}, {"asked", core::format_time(question.asked)}};
  if (question.answer.empty()) return entry;
  entry["answer"] = question.answer;
  entry["who"] = question.who;
  entry["answered"] = core::format_time(question.answered);
  if (!question.note.empty()) entry["note"] = question.note;
  return entry;
}

void list_questions(Context& context, const std::string& run,
                    const std::map<std::string, store::Question>& questions) {
  auto all = json::array();
  Table table;
  table.add({"STEP", "QUESTION", "ASKED", "ANSWER"});
  for (const auto& [step, question] : questions) {
    all.push_back(question_json(step, question));
    const auto answered = question.answer + " by " + core::printable(question.who);
    table.add({step, for_terminal(question.text), core::format_time(question.asked),
               question.answer.empty() ? "" : answered});
  }
  if (context.options().json)
    context.print_json({{"run", run}, {"questions", all}});
  else
    context.print(all.empty() ? "run " + run + " has asked nothing\n"
                              : table.render(context.paint()));
}

}  // namespace

core::ExitCode answer_command(Context& context) {
  const auto& options = context.options();
  auto& store = context.existing_store();
  const auto run = context.find_run(store);
  const auto questions = store::questions_of(store, run.id);
  if (options.step.empty()) {
    list_questions(context, run.id, questions);
    return core::ExitCode::ok;
  }
  const auto step = questions.contains(options.step)
                        ? options.step
                        : driver::recorded_step(store, run, options.step).name;
  const auto open = store::open_question(store, run, step);
  if (options.answer.yes_or_no.empty())
    throw core::InputError("'" + step + "' asks: " + open.text, "answer with yes or no");
  const auto question = store::answer_question(store, run, step,
                                               {.yes_or_no = options.answer.yes_or_no,
                                                .who = store::user_at_host(),
                                                .note = options.answer.note,
                                                .when = engine::wall_now()});
  if (options.json)
    context.print_json(question_json(step, question));
  else
    context.print(step + " of run " + run.id + ": " + question.answer + "\n");
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
