#include <pwd.h>
#include <unistd.h>

#include <array>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/text.hpp"
#include "core/diagnostic.hpp"
#include "core/quantity.hpp"
#include "engine/clock.hpp"
#include "store/questions.hpp"

namespace pipeline::cli {
namespace {

using nlohmann::json;

/// Returns `ana@host`.
std::string who_answers() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  const auto* user = ::getpwuid(::getuid());
  return (user ? std::string(user->pw_name) : std::to_string(::getuid())) + "@" + host.data();
}

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
    table.add({step, for_terminal(question.text, false), core::format_time(question.asked),
               question.answer.empty() ? "" : question.answer + " by " + question.who});
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
  const auto found = questions.find(options.step);
  if (found == questions.end()) {
    std::vector<std::string> asked;
    for (const auto& [step, question] : questions) asked.push_back(step);
    throw core::InputError("run " + run.id + " has not asked about a step '" + options.step + "'",
                           asked.empty() ? "a step with `wait` asks when its turn has come"
                                         : core::did_you_mean(options.step, asked));
  }
  auto question = found->second;
  if (!question.answer.empty())
    throw core::InputError("'" + options.step + "' was answered with " + question.answer + " by " +
                           question.who + " at " + core::format_time(question.answered));
  if (options.answer.yes_or_no.empty())
    throw core::InputError("'" + options.step + "' asks: " + question.text,
                           "answer with yes or no");
  if (run.status != RunStatus::running)
    throw core::InputError("run " + run.id + " has ended: " + std::string(to_string(run.status)),
                           "`pipe resume " + run.id + "` continues it");
  question.answer = options.answer.yes_or_no;
  question.note = options.answer.note;
  question.who = who_answers();
  question.answered = engine::wall_now();
  store::put_question(store, run.id, options.step, question);
  if (options.json)
    context.print_json(question_json(options.step, question));
  else
    context.print(options.step + " of run " + run.id + ": " + question.answer + "\n");
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
