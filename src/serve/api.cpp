#include "serve/api.hpp"

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "core/diagnostic.hpp"
#include "core/identifier.hpp"
#include "core/regular_file.hpp"
#include "core/text.hpp"
#include "report/comparison.hpp"
#include "report/curves.hpp"
#include "report/headline.hpp"
#include "report/leaderboard.hpp"
#include "report/lineage.hpp"
#include "report/picture.hpp"
#include "report/run_data.hpp"
#include "report/run_values.hpp"
#include "serve/feed.hpp"
#include "serve/log_part.hpp"
#include "serve/machine.hpp"
#include "serve/question_requests.hpp"

namespace pipeline::serve {
namespace {

using nlohmann::json;

constexpr std::size_t max_runs = 2000, max_columns = 24, max_compared = 20, max_rows = 1000;
constexpr std::size_t max_log_part = 1 << 20, default_log_part = 128 * 1024;
constexpr std::size_t max_picture = 64 << 20;

/// Returns true for the path of one of the page's views, so that the view can be reloaded.
bool is_view(const std::string& path) {
  return path == "/" || path == "/compare" || path == "/leaderboard" || path == "/machine" ||
         path == "/answer" || path.starts_with("/run/") || path.starts_with("/artifact/");
}

Response text_response(const char* type, const std::string& text) {
  Response response;
  response.type = type;
  response.body = text;
  return response;
}

/// Returns a file as a download, which browsers neither show nor run.
Response download(FileBody body, const std::string& name) {
  Response response;
  response.type = "application/octet-stream";
  response.headers.emplace_back(
      "Content-Disposition",
      "attachment; filename=\"" + (core::is_name(name) ? name : std::string("artifact")) + "\"");
  response.file = std::move(body);
  return response;
}

core::Digest digest_of(const PageRequest& request) {
  const auto& text = request.value("digest");
  constexpr std::size_t digits = 64;
  if (text.size() != digits || !core::all(text, core::is_hex_digit))
    throw core::InputError("a digest has 64 digits from 0 to f");
  return core::Digest::from_hex(text);
}

/// Throws InputError if the store has no such run.
store::RunRecord run_named(store::RunStore& store, const std::string& name) {
  auto found = name.empty() ? std::nullopt : store.runs().find(name);
  if (!found) throw core::InputError("there is no run '" + name + "'");
  return std::move(*found);
}

json run_row(const store::RunStore& store, const store::RunRecord& run) {
  return {{"id", run.id},
          {"pipeline", run.pipeline},
          {"status", report::live_status(store, run)},
          {"started", run.started.time_since_epoch().count()},
          {"took", run.took.count()},
          {"steps", run.steps},
          {"reused", run.cached},
          {"failed", run.failed},
          {"tags", run.tags},
          {"note", run.note}};
}

}  // namespace

Api::Api(store::RunStore& store, const store::ArtifactStore& artifacts, Assets assets,
         bool takes_answers)
    : store_(store),
      table_(store),
      artifacts_(artifacts),
      assets_(std::move(assets)),
      takes_answers_(takes_answers) {}

Response Api::respond(const PageRequest& request) {
  const auto& path = request.path;
  if (request.is_post) return post_answer(request);
  if (path == "/api/question") return show_question(store_, request);
  if (path == "/page.js") return text_response("text/javascript; charset=utf-8", assets_.script);
  if (path == "/page.css") return text_response("text/css; charset=utf-8", assets_.style);
  if (path == "/icon.svg") return text_response("image/svg+xml", assets_.icon);
  if (path == "/api/runs") return runs(request);
  if (path == "/api/run") return run(request);
  if (path == "/api/step") return step(request);
  if (path == "/api/compare") return compare(request);
  if (path == "/api/curves") return curves(request);
  if (path == "/api/leaderboard") return leaderboard(request);
  if (path == "/api/lineage") return lineage(request);
  if (path == "/api/log") return log(request);
  if (path == "/api/whole-log") return whole_log(request);
  if (path == "/api/events") return events(request);
  if (path == "/api/artifact") return artifact(request);
  if (path == "/api/picture") return picture(request);
  if (is_view(path)) return text_response("text/html; charset=utf-8", assets_.page);
  return refusal(404, "there is nothing at this address");
}

Response Api::post_answer(const PageRequest& request) {
  if (takes_answers_) return take_answer(store_, request);
  return refusal(403, "this page shows runs of a remote store, and takes no answers");
}

Response Api::runs(const PageRequest& request) {
  const auto at_least = [&](std::int64_t min, const char* name, std::int64_t otherwise) {
    return static_cast<std::size_t>(std::max(min, request.number(name, otherwise)));
  };
  const auto offset = at_least(0, "offset", 0);
  const auto limit = std::min(max_runs, at_least(1, "limit", 100));
  report::RunQuery query{.pipeline = request.value("pipeline"), .tag = request.value("tag")};
  query.where = request.value("where");
  query.sort = request.value("sort");
  query.is_ascending = request.value("order") == "ascending";
  query.columns = request.values("column");
  if (query.columns.size() > max_columns)
    throw core::InputError("at most " + std::to_string(max_columns) + " columns are shown");
  // Without a condition, values are needed only for the rows that are returned.
  const bool is_plain = query.where.empty() && query.sort.empty();
  const auto all = table_.find(query, is_plain && !query.columns.empty() ? offset + limit : 0);
  const auto total = is_plain && !query.columns.empty()
                         ? store_.runs().list(0, query.pipeline, query.tag).size()
                         : all.size();
  auto rows = json::array();
  for (auto i = offset; i < std::min(all.size(), offset + limit); ++i) {
    rows.push_back(run_row(store_, all[i].record));
    if (!query.columns.empty()) rows.back()["values"] = all[i].values;
  }
  json document{{"total", total}, {"offset", offset}, {"runs", std::move(rows)}};
  if (request.value("names") == "1") document["columns"] = table_.columns();
  return json_response(document);
}

std::vector<store::RunRecord> Api::find_runs(const PageRequest& request) {
  const auto names = request.values("run");
  if (names.size() > max_compared)
    throw core::InputError("at most " + std::to_string(max_compared) + " runs are shown together");
  std::vector<store::RunRecord> records;
  for (const auto& name : names) records.push_back(run_named(store_, name));
  return records;
}

Response Api::compare(const PageRequest& request) {
  const auto records = find_runs(request);
  if (records.size() < 2)
    throw core::InputError("a comparison needs from 2 to " + std::to_string(max_compared) +
                           " runs");
  auto list = json::array();
  for (const auto& record : records) list.push_back(run_row(store_, record));
  auto rows = json::array();
  for (const auto& row : report::without_instances(report::compared(store_, records))) {
    rows.push_back({{"group", row.group},
                    {"name", row.name},
                    {"values", row.values},
                    {"differs", row.differs()},
                    {"result", row.is_result}});
    const auto metric = std::string_view(row.name).substr(row.name.find('.') + 1);
    if (row.group == "metric" && report::is_better_lower(metric)) rows.back()["low"] = true;
  }
  std::set<std::string> curves;
  for (const auto& record : records)
    for (const auto& metric : store_.metrics().list(record.id))
      if (metric.points > 1) curves.insert(metric.name);
  return json_response({{"runs", std::move(list)}, {"rows", std::move(rows)}, {"curves", curves}});
}

Response Api::curves(const PageRequest& request) {
  report::CurveRange range;
  range.from = request.number("from", range.from);
  range.to = request.number("to", range.to);
  range.is_time = request.value("by") == "time";
  return json_response(
      report::curves_of(store_, find_runs(request), request.value("name"), range, {}));
}

Response Api::leaderboard(const PageRequest& request) {
  const auto& where = request.value("where");
  const auto runs = find_runs(request);
  return json_response(
      runs.empty() ? report::leaderboard_of_runs(store_, request.value("pipeline"), where, max_rows)
                   : report::leaderboard_of_steps(store_, runs, where));
}

Response Api::lineage(const PageRequest& request) {
  const auto digest = digest_of(request);
  return json_response({{"digest", digest.hex()}, {"made_by", report::lineage_of(store_, digest)}});
}

store::RunRecord Api::find_run(const PageRequest& request) {
  return run_named(store_, request.value("run"));
}

store::AttemptRecord Api::find_attempt(const PageRequest& request) {
  const auto run = find_run(request);
  auto attempts = store_.attempts().list(run.id, request.value("step"));
  const auto number = request.number("attempt", 0);
  if (number > 0) std::erase_if(attempts, [&](const auto& one) { return one.number != number; });
  if (attempts.empty())
    throw core::InputError("run " + run.id + " has no such attempt of '" + request.value("step") +
                           "'");
  return std::move(attempts.back());
}

Response Api::run(const PageRequest& request) {
  return json_response(report::RunData(store_, artifacts_, find_run(request), page_limits()).all());
}

Response Api::step(const PageRequest& request) {
  const auto run = find_run(request);
  auto found =
      report::RunData(store_, artifacts_, run, page_limits()).details(request.value("step"));
  if (found.is_null())
    throw core::InputError("run " + run.id + " has no step '" + request.value("step") + "'");
  return json_response(found);
}

Response Api::log(const PageRequest& request) {
  const auto attempt = find_attempt(request);
  const auto max_bytes = static_cast<std::size_t>(std::clamp<std::int64_t>(
      request.number("most", default_log_part), 1, static_cast<std::int64_t>(max_log_part)));
  const auto from = request.number("from", -1), before = request.number("before", -1);
  LogPart part;
  if (const auto file = core::open_untrusted_file(store_.paths().log_file(attempt.log)))
    part = from >= 0
               ? part_from(file, static_cast<std::uint64_t>(from), max_bytes)
               : part_before(file, before >= 0 ? static_cast<std::uint64_t>(before) : UINT64_MAX,
                             max_bytes);
  return json_response({{"from", part.from},
                        {"to", part.to},
                        {"size", part.size},
                        {"attempt", attempt.number},
                        {"over", attempt.ended != WallTime{}},
                        {"text", part.text}});
}

Response Api::whole_log(const PageRequest& request) {
  const auto attempt = find_attempt(request);
  auto file = core::open_untrusted_file(store_.paths().log_file(attempt.log));
  if (!file) return refusal(404, "the step has printed nothing");
  const auto size = size_of(file);
  return download({std::move(file), 0, size},
                  attempt.step + "." + std::to_string(attempt.number) + ".log");
}

Response Api::events(const PageRequest& request) {
  Response response;
  response.type = "text/event-stream";
  if (request.value("machine") == "1")
    response.feed = machine_feed(store_.folder());
  else if (request.value("run").empty())
    response.feed = runs_feed(store_);
  else
    response.feed = run_feed(store_, artifacts_, find_run(request));
  return response;
}

Response Api::artifact(const PageRequest& request) {
  const auto digest = digest_of(request);
  auto file = core::open_untrusted_file(artifacts_.path(digest));
  if (!file)
    return refusal(404,
                   "this artifact is a folder, or not on this machine: `pipe artifacts` "
                   "copies it out");
  const auto size = size_of(file);
  return download({std::move(file), 0, size}, request.value("name"));
}

Response Api::picture(const PageRequest& request) {
  const auto bytes = core::read_untrusted_file(artifacts_.path(digest_of(request)), max_picture);
  const auto* type = bytes ? report::picture_type(*bytes) : nullptr;
  if (!type) return refusal(404, "this artifact is not a picture that browsers show");
  return text_response(type, *bytes);
}

}  // namespace pipeline::serve
