#include "serve/answer.hpp"

#include <nlohmann/json.hpp>

namespace pipeline::serve {
namespace {

std::string dumped(const nlohmann::json& document) {
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

Answer json_answer(const nlohmann::json& document) {
  Answer answer;
  answer.type = "application/json";
  answer.body = dumped(document);
  return answer;
}

Answer refusal(unsigned status, std::string text) {
  Answer answer;
  answer.status = status;
  answer.body = std::move(text) + "\n";
  return answer;
}

std::string event_text(const char* name, const nlohmann::json& data) {
  return std::string("event: ") + name + "\ndata: " + dumped(data) + "\n\n";
}

}  // namespace pipeline::serve
