#include "serve/question_requests.hpp"

#include <chrono>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/diagnostic.hpp"
#include "core/text.hpp"
#include "report/questions.hpp"

namespace pipeline::serve {
namespace {

using nlohmann::json;

constexpr std::size_t max_name = 100, max_step = 2000, max_note = 2000;  // Bytes.

WallTime now() {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

json entry_of(const store::RunRecord& run, const std::string& step,
              const store::Question& question) {
  auto entry = report::question_entry(step, question);
  entry["run"] = run.id;
  entry["pipeline"] = run.pipeline;
  return entry;
}

/// Finds a question for a request that has the token or the question's key. A wrong key gets the
/// same error for every run and step, so that a stranger cannot learn names.
std::pair<store::RunRecord, store::Question> find_question(store::RunStore& store,
                                                           const PageRequest& request,
                                                           const std::string& run,
                                                           const std::string& step) {
  auto record = run.empty() ? std::nullopt : store.runs().find(run);
  auto questions =
      record ? store::questions_of(store, record->id) : std::map<std::string, store::Question>();
  const auto found = questions.find(step);
  if (request.has_token) {
    if (!record) throw core::InputError("there is no run '" + run + "'");
    if (found == questions.end())
      throw core::InputError("run " + record->id + " has not asked about a step '" + step + "'");
  } else if (found == questions.end() || !store::is_answer_key(found->second, request.bearer)) {
    throw core::InputError(
        "this address lacks the key of the question: open the whole address in the message");
  }
  return {std::move(*record), std::move(found->second)};
}

/// Returns null for a text that is not JSON.
json parsed(const std::string& text) try {
  return core::parse_json(text);
} catch (const std::exception&) {
  return nullptr;
}

std::string text_of(const json& body, const char* key, std::size_t max) {
  const auto found = body.find(key);
  if (found == body.end()) return {};
  if (!found->is_string()) throw core::InputError("'" + std::string(key) + "' must be a text");
  auto text = found->get<std::string>();
  if (text.size() > max)
    throw core::InputError("'" + std::string(key) + "' has more than " + std::to_string(max) +
                           " bytes");
  return text;
}

/// Returns who answers: the user of this server, or someone with the address from a message. A
/// typed name is not verified.
std::string who_answers(const PageRequest& request, const std::string& name) {
  const auto from = request.has_token ? store::user_at_host() + ", on the page"
                                      : "the address of a message, from " + request.peer;
  return name.empty() ? from : core::replaced(name, "\n", " ") + " (" + from + ")";
}

}  // namespace

bool is_about_a_question(const PageRequest& request) {
  return request.path == (request.is_post ? "/api/answer" : "/api/question");
}

Response show_question(store::RunStore& store, const PageRequest& request) {
  const auto& step = request.value("step");
  const auto [run, question] = find_question(store, request, request.value("run"), step);
  return json_response(entry_of(run, step, question));
}

Response take_answer(store::RunStore& store, const PageRequest& request) {
  const auto body = parsed(request.body);
  if (!body.is_object()) return refusal(400, "an answer is a JSON object");
  const auto step = text_of(body, "step", max_step), answer = text_of(body, "answer", max_name);
  const auto [run, question] = find_question(store, request, text_of(body, "run", max_name), step);
  if (answer != "yes" && answer != "no") throw core::InputError("'answer' must be yes or no");
  store::RunStore writer(store.folder());
  const auto answered =
      store::answer_question(writer, run, step,
                             {.yes_or_no = answer,
                              .who = who_answers(request, text_of(body, "name", max_name)),
                              .note = text_of(body, "note", max_note),
                              .when = now()});
  return json_response(entry_of(run, step, answered));
}

}  // namespace pipeline::serve
