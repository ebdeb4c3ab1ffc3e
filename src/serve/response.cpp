#include "serve/response.hpp"

#include <nlohmann/json.hpp>

namespace pipeline::serve {
namespace {

std::string dumped(const nlohmann::json& document) {
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

Response json_response(const nlohmann::json& document) {
  Response response;
  response.type = "application/json";
  response.body = dumped(document);
  return response;
}

Response refusal(unsigned status, std::string text) {
  Response response;
  response.status = status;
  response.body = std::move(text) + "\n";
  return response;
}

std::string event_text(const char* name, const nlohmann::json& data) {
  return std::string("event: ") + name + "\ndata: " + dumped(data) + "\n\n";
}

}  // namespace pipeline::serve
