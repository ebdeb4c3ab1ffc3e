#include "store/questions.hpp"

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"

namespace pipeline::store {
namespace {

using nlohmann::json;

json questions_json(RunStore& store, const std::string& run) {
  auto all = core::parse_json(store.key_values().find(questions_kind, run).value_or("{}"));
  return all.is_object() ? all : json::object();
}

WallTime time_of(const json& value) {
  return WallTime(std::chrono::milliseconds(value.get<std::int64_t>()));
}

}  // namespace

std::map<std::string, Question> questions_of(RunStore& store, const std::string& run) try {
  std::map<std::string, Question> questions;
  const auto all = questions_json(store, run);
  for (const auto& [step, row] : all.items())
    questions[step] = {row.at(0), time_of(row.at(1)), row.at(2),
                       row.at(3), time_of(row.at(4)), row.at(5)};
  return questions;
} catch (const json::exception&) {
  return {};
}

void put_question(RunStore& store, const std::string& run, const std::string& step,
                  const Question& question) {
  store.transaction([&] {
    auto all = questions_json(store, run);
    all[step] = {question.text, question.asked.time_since_epoch().count(),    question.answer,
                 question.who,  question.answered.time_since_epoch().count(), question.note};
    store.key_values().put(questions_kind, run, all.dump());
  });
}

}  // namespace pipeline::store
