#include "report/questions.hpp"

#include <nlohmann/json.hpp>

namespace pipeline::report {

using nlohmann::json;

json question_entry(const std::string& step, const store::Question& question) {
  return {{"step", step},
          {"question", question.text},
          {"asked", question.asked.time_since_epoch().count()},
          {"answer", question.answer},
          {"who", question.who},
          {"answered", question.answered.time_since_epoch().count()},
          {"note", question.note}};
}

json question_list(store::RunStore& store, const std::string& run) {
  auto list = json::array();
  for (const auto& [step, question] : store::questions_of(store, run))
    list.push_back(question_entry(step, question));
  return list;
}

}  // namespace pipeline::report
