#include "notify/message.hpp"

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "core/quantity.hpp"
#include "store/failures.hpp"

namespace pipeline::notify {
namespace {

using nlohmann::json;

/// Limits of a message, because Slack and Teams accept some ten thousand characters: numbers of
/// failures and of lines of each, and sizes of texts in bytes.
constexpr std::size_t max_failed = 20, max_lines = 5, max_reason = 400, max_question = 2000;

/// Returns the failures, equal ones once.
std::vector<model::FailureGroup> failed_of(const std::vector<store::StepRecord>& steps) {
  auto failed = model::group_failures(store::failures_of(steps));
  if (failed.size() > max_failed) failed.resize(max_failed);
  return failed;
}

/// Returns the last lines that the failed step printed, each cut to max_reason bytes.
std::vector<std::string> last_lines(const Failure& failure) {
  std::vector<std::string> lines;
  const auto& all = failure.details;
  for (auto i = all.size() - std::min(all.size(), max_lines); i < all.size(); ++i)
    lines.push_back(all[i].substr(0, max_reason));
  return lines;
}

std::map<StepStatus, std::size_t> counts_of(const std::vector<store::StepRecord>& steps) {
  std::map<StepStatus, std::size_t> counts;
  for (const auto& step : steps) ++counts[step.status];
  return counts;
}

const char* word_of(StepStatus status) {
  return status == StepStatus::cached ? "reused" : to_string(status).data();
}

json object_of(const store::RunRecord& run, const std::vector<store::StepRecord>& steps,
               const std::string& command) {
  json object{{"event", "run_finished"},          {"run", run.id},
              {"pipeline", run.pipeline},         {"status", to_string(run.status)},
              {"orchestrator", run.orchestrator}, {"started", core::format_time(run.started)},
              {"took_ms", run.took.count()},      {"steps", json::object()},
              {"failed", json::array()},          {"report", command}};
  for (const auto& [status, count] : counts_of(steps)) object["steps"][word_of(status)] = count;
  for (const auto& [names, failure, matrix] : failed_of(steps)) {
    json entry{{"step", names.front()},
               {"steps", names.size()},
               {"message", failure.message.substr(0, max_reason)}};
    if (!failure.hints.empty()) entry["hints"] = failure.hints;
    if (!failure.details.empty()) entry["details"] = last_lines(failure);
    object["failed"].push_back(std::move(entry));
  }
  if (!run.tags.empty()) object["tags"] = run.tags;
  if (!run.git_commit.empty())
    object["git"] = {{"commit", run.git_commit}, {"dirty", run.git_dirty}};
  return object;
}

std::string text_of(const store::RunRecord& run, const std::vector<store::StepRecord>& steps,
                    const std::string& command, const char* line_break) {
  std::string text = run.pipeline + " " + std::string(to_string(run.status)) + " after " +
                     core::format_duration(run.took) + line_break;
  std::string counts;
  for (const auto& [status, count] : counts_of(steps))
    counts += (counts.empty() ? "" : ", ") + std::to_string(count) + " " + word_of(status);
  text += "run " + run.id + ": " + counts;
  for (const auto& group : failed_of(steps)) {
    text += line_break + names_of(group) + ": " + group.failure.message.substr(0, max_reason);
    for (const auto& line : last_lines(group.failure)) text += line_break + ("| " + line);
    for (const auto& hint : group.failure.hints)
      text += line_break + ("hint: " + hint.substr(0, max_reason));
  }
  return text + line_break + command;
}

/// Escapes a text for Slack, which reads `<...>` as links and mentions: a step's message may
/// contain `<!channel>`.
std::string for_slack(const std::string& text) {
  std::string escaped;
  for (const char c : text)
    escaped += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  return escaped;
}

/// Escapes a text for Teams, which reads Markdown.
std::string for_teams(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (std::string_view("\\`*_[]()#<>").find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

/// Returns the body of a text for people. Teams' workflows and its older connectors both accept
/// this form of a card.
json body_of(NotifyFormat format, const std::string& text) {
  if (format == NotifyFormat::slack) return {{"text", text}};
  const json block{{"type", "TextBlock"}, {"text", text}, {"wrap", true}};
  const json card{{"$schema", "http://adaptivecards.io/schemas/adaptive-card.json"},
                  {"type", "AdaptiveCard"},
                  {"version", "1.4"},
                  {"body", json::array({block})}};
  return {{"type", "message"},
          {"attachments", json::array({{{"contentType", "application/vnd.microsoft.card.adaptive"},
                                        {"content", card}}})}};
}

std::string escaped(NotifyFormat format, const std::string& text) {
  return format == NotifyFormat::slack ? for_slack(text) : for_teams(text);
}

const char* line_break_of(NotifyFormat format) {
  return format == NotifyFormat::slack ? "\n" : "\n\n";
}

std::string dumped(const json& body) {
  return body.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

std::string message(NotifyFormat format, const store::RunRecord& run,
                    const std::vector<store::StepRecord>& steps, const std::string& command) {
  if (format == NotifyFormat::json) return dumped(object_of(run, steps, command));
  const auto text = text_of(run, steps, command, line_break_of(format));
  return dumped(body_of(format, escaped(format, text)));
}

std::string question_message(NotifyFormat format, const StepQuestion& question) {
  const auto asked = question.text.substr(0, max_question);
  if (format == NotifyFormat::json) {
    json object{{"event", "question"},   {"run", question.run}, {"pipeline", question.pipeline},
                {"step", question.step}, {"question", asked},   {"answer", question.command}};
    if (!question.address.empty()) object["page"] = question.address;
    return dumped(object);
  }
  const std::string line_break = line_break_of(format);
  auto text = escaped(format, question.pipeline + ", step " + question.step + " asks: " + asked +
                                  line_break + "answer: " + question.command);
  if (!question.address.empty())
    text += line_break + (format == NotifyFormat::slack
                              ? "or <" + for_slack(question.address) + "|on its page>"
                              : "or [on its page](" + question.address + ")");
  return dumped(body_of(format, text));
}

}  // namespace pipeline::notify
