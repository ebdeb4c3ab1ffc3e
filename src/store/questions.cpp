#include "store/questions.hpp"

#include <pwd.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <random>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/diagnostic.hpp"
#include "core/digest.hpp"
#include "core/quantity.hpp"
#include "core/utf8.hpp"

namespace pipeline::store {
namespace {

using nlohmann::json;

constexpr std::size_t key_digits = 32;

json questions_json(RunStore& store, const std::string& run) {
  auto all = core::parse_json(store.key_values().find(questions_kind, run).value_or("{}"));
  return all.is_object() ? all : json::object();
}

WallTime time_of(const json& value) {
  return WallTime(std::chrono::milliseconds(value.get<std::int64_t>()));
}

/// Returns nothing for a row that is not a question, so that the run's other questions are read.
std::optional<Question> read_question(const json& row) try {
  constexpr std::size_t key_place = 6;  // Records of earlier versions end before it.
  return Question{row.at(0),
                  time_of(row.at(1)),
                  row.at(2),
                  row.at(3),
                  time_of(row.at(4)),
                  row.at(5),
                  row.size() > key_place ? row.at(key_place).get<std::string>() : ""};
} catch (const json::exception&) {
  return std::nullopt;
}

[[noreturn]] void refuse_unknown(const std::string& run, const std::string& step,
                                 const std::map<std::string, Question>& questions) {
  std::vector<std::string> asked;
  for (const auto& [each, question] : questions) asked.push_back(each);
  throw core::InputError("run " + run + " has not asked about a step '" + step + "'",
                         asked.empty() ? "a step with `wait` asks when its turn has come"
                                       : core::did_you_mean(step, asked));
}

}  // namespace

std::map<std::string, Question> questions_of(RunStore& store, const std::string& run) {
  std::map<std::string, Question> questions;
  const auto all = questions_json(store, run);
  for (const auto& [step, row] : all.items())
    if (auto question = read_question(row)) questions[step] = std::move(*question);
  return questions;
}

Question open_question(RunStore& store, const RunRecord& run, const std::string& step) {
  const auto questions = questions_of(store, run.id);
  const auto found = questions.find(step);
  if (found == questions.end()) refuse_unknown(run.id, step, questions);
  const auto& question = found->second;
  if (!question.answer.empty())
    throw core::InputError("'" + step + "' was answered with " + question.answer + " by " +
                           question.who + " at " + core::format_time(question.answered));
  if (run.status != RunStatus::running)
    throw core::InputError("run " + run.id + " has ended: " + std::string(to_string(run.status)),
                           "`pipe resume " + run.id + "` continues it");
  return question;
}

void put_question(RunStore& store, const std::string& run, const std::string& step,
                  const Question& question) {
  // In one transaction, so that no writer overwrites the question of another step.
  store.transaction([&] {
    auto all = questions_json(store, run);
    all[step] = {question.text,      question.asked.time_since_epoch().count(),    question.answer,
                 question.who,       question.answered.time_since_epoch().count(), question.note,
                 question.key_digest};
    store.key_values().put(questions_kind, run, all.dump());
  });
}

Question answer_question(RunStore& store, const RunRecord& run, const std::string& step,
                         const Answer& answer) {
  if (!core::is_utf8(answer.note))
    throw core::InputError("the note of an answer must be UTF-8",
                           "write it in UTF-8, or leave it out");
  Question answered;
  store.transaction([&] {
    answered = open_question(store, run, step);
    answered.answer = answer.yes_or_no;
    answered.who = answer.who;
    answered.answered = answer.when;
    answered.note = answer.note;
    put_question(store, run.id, step, answered);
  });
  return answered;
}

std::string make_answer_key(RunStore& store, const std::string& run, const std::string& step) {
  std::random_device random;  // getrandom(2) or the processor's generator.
  std::string key;
  while (key.size() < key_digits) key += "0123456789abcdef"[random() % 16];
  store.transaction([&] {
    auto questions = questions_of(store, run);
    const auto known = questions.find(step);
    if (known == questions.end()) refuse_unknown(run, step, questions);
    known->second.key_digest = core::sha256(key).hex();
    put_question(store, run, step, known->second);
  });
  return key;
}

bool is_answer_key(const Question& question, std::string_view key) {
  // Digests are compared, so the time of the comparison tells nothing of the key.
  return key.size() == key_digits && question.key_digest == core::sha256(key).hex();
}

std::string user_at_host() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  const auto* user = ::getpwuid(::getuid());
  return (user ? std::string(user->pw_name) : std::to_string(::getuid())) + "@" + host.data();
}

}  // namespace pipeline::store
