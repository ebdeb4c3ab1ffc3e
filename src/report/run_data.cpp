#include <unistd.h>

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "core/base64.hpp"
#include "core/bounded_json.hpp"
#include "core/file.hpp"
#include "core/notebook.hpp"
#include "core/regular_file.hpp"
#include "model/instance.hpp"
#include "report/curves.hpp"
#include "report/headline.hpp"
#include "report/notebook_cells.hpp"
#include "report/picture.hpp"
#include "report/questions.hpp"
#include "report/rank_entries.hpp"
#include "report/run_data.hpp"
#include "report/run_values.hpp"
#include "store/failures.hpp"

namespace pipeline::report {
namespace {

using nlohmann::json;

constexpr std::size_t max_message = 4000;  // Bytes of a failure's message in the page.

WallTime wall_now() {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}
std::int64_t milliseconds_of(WallTime time) { return time.time_since_epoch().count(); }

struct Tail {
  std::string text;
  std::uint64_t left_out = 0;  ///< Bytes of the file before `text`.
};

/// Estimates the bytes that the text takes in the page: control characters and those of HTML take
/// six. The second byte of `\"`, `\\` and `\n` is not counted.
std::size_t escaped_size(std::string_view text) {
  constexpr std::size_t added_by_escape = 5;  // `\u001b` has six bytes instead of one.
  return text.size() +
         added_by_escape * static_cast<std::size_t>(std::ranges::count_if(text, [](char c) {
           return (static_cast<unsigned char>(c) < ' ' && c != '\n') || c == '<' || c == '>' ||
                  c == '&';
         }));
}

/// Returns the end of the file; nothing if it is empty, or cannot be opened.
std::optional<Tail> tail_of(const std::filesystem::path& file, std::size_t limit) {
  const auto opened = core::open_untrusted_file(file);
  const auto size = opened ? ::lseek(opened.get(), 0, SEEK_END) : -1;
  if (size <= 0) return std::nullopt;
  Tail tail;
  tail.left_out = static_cast<std::uint64_t>(std::max<off_t>(0, size - static_cast<off_t>(limit)));
  tail.text.resize(static_cast<std::size_t>(size) - tail.left_out);
  const auto got =
      ::pread(opened.get(), tail.text.data(), tail.text.size(), static_cast<off_t>(tail.left_out));
  tail.text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return tail;
}

}  // namespace

RunData::RunData(store::RunStore& store, const store::ArtifactStore& artifacts,
                 store::RunRecord run, const ReportLimits& limits)
    : store_(store), artifacts_(artifacts), run_(std::move(run)), limits_(limits) {}

void RunData::read_steps() {
  steps_ = store_.runs().steps(run_.id);
  outputs_.clear();
  for (const auto& step : steps_)
    for (const auto& output : step.outputs) outputs_.push_back({&step, &output});
  std::ranges::stable_sort(outputs_, {}, &ProducedOutput::digest);
}

std::span<const RunData::ProducedOutput> RunData::outputs_equal_to(
    const core::Digest& artifact) const {
  return std::ranges::equal_range(outputs_, artifact, {}, &ProducedOutput::digest);
}

json RunData::all() {
  read_steps();
  if (limits_.details)
    inputs_ = store_.lineage().inputs_of_run(run_.same_as.empty() ? run_.id : run_.same_as);
  std::map<std::string, std::vector<store::AttemptRecord>> attempts;
  for (auto& attempt : store_.attempts().list(run_.id)) {
    auto& step_attempts = attempts[attempt.step];
    step_attempts.push_back(std::move(attempt));
  }
  std::vector<json> entries(steps_.size());
  // Failed steps come first, because the space for logs is limited.
  for (const bool is_failed : {true, false})
    for (std::size_t i = 0; i < steps_.size(); ++i)
      if ((steps_[i].status == StepStatus::failed) == is_failed)
        entries[i] = step_entry(steps_[i], attempts[steps_[i].name]);
  last_run_ = run_entry();
  last_failures_ = failures();
  last_metrics_ = metrics();
  last_published_ = published();
  last_questions_ = question_list(store_, run_.id);
  known_pictures_ = pictures_.size();
  return {{"now", milliseconds_of(wall_now())},
          {"run", last_run_},
          {"declared", declared_steps(store_, run_)},
          {"failures", last_failures_},
          {"steps", std::move(entries)},
          {"headlines", headlines()},
          {"published", last_published_},
          {"questions", last_questions_},
          {"metrics", last_metrics_},
          {"pictures", pictures_},
          {"gathers", gathers_},
          {"images", images_.list()},
          {"nodes", nodes_.list()}};
}

json RunData::changes() {
  auto found = store_.runs().find(run_.id);
  if (!found || found->id != run_.id) return nullptr;  // The run has been removed.
  run_ = std::move(*found);
  read_steps();
  auto changed = json::object();
  const auto images_before = images_.size(), nodes_before = nodes_.size(),
             gathers_before = gathers_.size();
  for (const auto& step : steps_) {
    const auto known = stamps_.find(step.name);
    if (known != stamps_.end() && known->second == stamp_of(step)) continue;
    if (limits_.details && !step.key.empty())
      inputs_[step.key] = store_.lineage().inputs_of_step(step.key);
    changed["steps"].push_back(step_entry(step, store_.attempts().list(run_.id, step.name)));
  }
  if (images_.size() > images_before) changed["images"] = images_.list();
  if (nodes_.size() > nodes_before) changed["nodes"] = nodes_.list();
  if (gathers_.size() > gathers_before) changed["gathers"] = gathers_;
  if (auto entry = run_entry(); entry != last_run_) changed["run"] = last_run_ = std::move(entry);
  if (auto list = failures(); list != last_failures_)
    changed["failures"] = last_failures_ = std::move(list);
  if (auto list = metrics(); list != last_metrics_)
    changed["metrics"] = last_metrics_ = std::move(list);
  if (changed.contains("steps") || changed.contains("run")) changed["headlines"] = headlines();
  if (auto list = published(); list != last_published_)
    changed["published"] = last_published_ = std::move(list);
  if (auto list = question_list(store_, run_.id); list != last_questions_)
    changed["questions"] = last_questions_ = std::move(list);
  if (std::exchange(known_pictures_, pictures_.size()) < pictures_.size())
    changed["pictures"] = pictures_;
  return changed.empty() ? json() : changed;
}

json RunData::details(const std::string& name) {
  read_steps();
  const auto step = std::ranges::find(steps_, name, &store::StepRecord::name);
  if (step == steps_.end()) return nullptr;
  if (!step->key.empty()) inputs_[step->key] = store_.lineage().inputs_of_step(step->key);
  const bool had_details = std::exchange(limits_.details, true);
  auto entry = step_entry(*step, store_.attempts().list(run_.id, name));
  limits_.details = had_details;
  return {{"step", std::move(entry)},
          {"images", images_.list()},
          {"nodes", nodes_.list()},
          {"gathers", gathers_}};
}

RunData::Stamp RunData::stamp_of(const store::StepRecord& step) {
  return {step.status, step.attempts, step.started, step.ended};
}

std::string RunData::status() const {
  return limits_.checks_driver ? live_status(store_, run_) : std::string(to_string(run_.status));
}

json RunData::run_entry() const {
  return {{"id", run_.id},
          {"pipeline", run_.pipeline},
          {"status", status()},
          {"orchestrator", run_.orchestrator},
          {"started", milliseconds_of(run_.started)},
          {"ended", milliseconds_of(run_.ended)},
          {"took", run_.took.count()},
          {"commit", run_.git_commit},
          {"dirty", run_.git_dirty},
          {"file", run_.file},
          {"tags", run_.tags},
          {"note", run_.note},
          {"same_as", run_.same_as},
          {"parameters", core::parse_json(run_.parameters)}};
}

json RunData::step_entry(const store::StepRecord& step,
                         const std::vector<store::AttemptRecord>& attempts) {
  stamps_[step.name] = stamp_of(step);
  const bool is_failed = step.status == StepStatus::failed;
  json entry{{"n", step.name}, {"s", to_string(step.status)}};
  const std::string base(model::base_name(step.name));
  if (base != step.name) entry["b"] = base;
  if (!step.image.empty()) entry["i"] = images_.position_of(step.image);
  if (!step.message.empty()) entry["m"] = step.message.substr(0, max_message);
  for (const auto& output : step.outputs) add_picture(step, output);
  if (entry.contains("b") || step.status == StepStatus::failed)
    if (auto parameters = core::parse_json(step.parameters);
        parameters.is_object() && !parameters.empty())
      entry["p"] = std::move(parameters);
  if (limits_.details) add_details(step, entry);
  if (step.attempts > 0)
    for (const auto& attempt : attempts) {
      entry["a"].push_back(attempt_entry(attempt, is_failed));
      if (limits_.details && !attempt.image.empty() && attempt.image != step.image)
        entry["a"].back()["i"] = images_.position_of(attempt.image);
    }
  return entry;
}

void RunData::add_details(const store::StepRecord& step, json& entry) {
  if (!step.reused_from.empty()) entry["r"] = step.reused_from;
  if (!step.key.empty()) entry["k"] = step.key.substr(0, 12);
  for (const auto& output : step.outputs) {
    json listed{output.name, output.file_name, output.bytes,
                output.digest.hex().substr(0, limits_.digits)};
    if (output.is_directory) listed.push_back(true);
    entry["o"].push_back(std::move(listed));
  }
  add_inputs(step, entry);
}

const RunData::ProducedOutput& RunData::output_of(const std::string& step,
                                                  std::span<const ProducedOutput> equal,
                                                  std::size_t position) {
  for (const auto& output : equal)
    if (output.step->name == step) return output;
  return equal[std::min(position, equal.size() - 1)];
}

/// Returns where data from outside came from: a path in the pipeline's folder is relative to it.
std::string RunData::shown_source(const store::DataOrigin& data) const {
  const auto folder = std::filesystem::path(run_.file).parent_path() / "";
  return data.source.starts_with(folder.string()) ? data.source.substr(folder.string().size())
                                                  : data.source;
}

void RunData::add_inputs(const store::StepRecord& step, json& entry) {
  const auto inputs = inputs_.find(step.key);
  if (inputs == inputs_.end()) return;
  for (const auto& [name, artifact, step_name, data] : inputs->second)
    if (data)
      entry["f"].push_back({name, data->kind + " " + shown_source(*data),
                            data->digest ? data->digest->hex().substr(0, 12) : ""});
    else if (const auto equal = outputs_equal_to(artifact); !equal.empty())
      entry["f"].push_back({name, output_of(step_name, equal, 0).name()});
    else if (const auto gather = gather_of(artifact))
      entry["f"].push_back({name, *gather});
}

std::optional<std::size_t> RunData::gather_of(const core::Digest& input) {
  const auto [known, is_new] = gather_positions_.try_emplace(input);
  if (!is_new) return known->second;
  // If the record names no step, the n-th of equal outputs is that of the n-th step that made one.
  std::map<core::Digest, std::size_t> seen;
  auto outputs = json::array();
  for (const auto& [artifact, step] : store_.lineage().gathered(input)) {
    const auto equal = outputs_equal_to(artifact);
    if (equal.empty()) {
      outputs.push_back(artifact.hex().substr(0, 12));
      continue;
    }
    outputs.push_back(output_of(step, equal, seen[artifact]++).name());
  }
  if (outputs.empty()) return std::nullopt;
  gathers_.push_back(std::move(outputs));
  return known->second = gathers_.size() - 1;
}

namespace {

/// Returns the mean and peak load (0 to 1), and the bytes of memory: mean, peak, size.
json gpu_entry(const core::GpuUsage* used) {
  if (!used) return nullptr;
  const auto number = [](const auto& value) { return value ? json(*value) : json(); };
  return {number(used->mean_load), number(used->peak_load), used->mean_memory, used->peak_memory,
          used->memory};
}

}  // namespace

json RunData::attempt_entry(const store::AttemptRecord& attempt, bool is_failed) {
  json entry{{"t", milliseconds_of(attempt.started) - milliseconds_of(run_.started)},
             {"d", attempt.took.count()}};
  if (attempt.ended == WallTime{}) entry["e"] = true;
  if (attempt.exit_code) entry["x"] = *attempt.exit_code;
  if (!attempt.message.empty()) entry["m"] = attempt.message.substr(0, max_message);
  if (!attempt.gpus.empty()) entry["q"] = attempt.gpus.size();
  const auto& used = attempt.usage;
  if (used.user)
    entry["c"] =
        (used.user->count() + used.system.value_or(std::chrono::microseconds()).count()) / 1000;
  const auto tasks = store_.attempts().tasks(attempt);
  if (const auto memory = memory_of_node(attempt, tasks)) entry["y"] = *memory;
  if (used.memory_limit) entry["yl"] = *used.memory_limit;
  if (limits_.details) add_attempt_details(attempt, tasks, entry);
  const auto& [waiting, preparing, transfers, running, storing, waits] = attempt.phases;
  const bool waited_only_for_slot = waits.size() == 1 && waits.contains("slot");
  if (!waited_only_for_slot)
    for (const auto& [awaited, time] : waits) entry["hw"][awaited] = time.count();
  if (running) {
    const auto count = [](const auto& phase) { return phase ? phase->count() : 0; };
    entry["h"] = {count(waiting), count(preparing), running->count(), count(storing)};
    if (count(transfers) > 0) entry["h"].push_back(count(transfers));
  }
  add_log(attempt, is_failed, entry);
  return entry;
}

void RunData::add_attempt_details(const store::AttemptRecord& attempt,
                                  const std::vector<store::TaskRecord>& tasks, json& entry) {
  const auto& used = attempt.usage;
  if (!attempt.node.empty()) entry["w"] = nodes_.position_of(attempt.node);
  for (const auto& gpu : attempt.gpus) {
    entry["g"].push_back(gpu.model + " " + gpu.uuid);
    if (!used.gpus.empty()) entry["gu"].push_back(gpu_entry(used.of_gpu(gpu.uuid)));
  }
  if (used.read && *used.read > 0) entry["rd"] = *used.read;
  if (used.written && *used.written > 0) entry["wr"] = *used.written;
  add_ranks(
      tasks, [this](const std::string& node) { return nodes_.position_of(node); }, entry);
}

void RunData::add_log(const store::AttemptRecord& attempt, bool is_failed, json& entry) {
  if (limits_.logs == 0 || attempt.log.empty()) return;
  const auto limit = std::min(is_failed ? limits_.failed_log : limits_.log,
                              limits_.logs - std::min(limits_.logs, log_bytes_));
  // Without space for the log, the page still says its length, for which one byte is read.
  auto tail = tail_of(store_.paths().log_file(attempt.log), std::max<std::size_t>(limit, 1));
  if (!tail || limit == 0) {
    if (tail) entry["lo"] = tail->left_out + tail->text.size();
    return;
  }
  log_bytes_ += escaped_size(tail->text);
  entry["l"] = std::move(tail->text);
  if (tail->left_out > 0) entry["lo"] = tail->left_out;
}

void RunData::add_picture(const store::StepRecord& step, const store::OutputRecord& output) {
  if (output.is_directory) return;
  const auto name = step.name + "." + output.name;
  constexpr std::size_t max_listed = 60, live_page_notebooks = 1'000'000;
  if (core::is_notebook(output.file_name)) {
    const auto limit = limits_.pictures == 0 ? live_page_notebooks : limits_.pictures;
    const auto is_known =
        std::ranges::any_of(pictures_, [&](const json& one) { return one["name"] == name; });
    if (is_known || output.bytes > limit - std::min(limit, picture_bytes_)) return;
    const auto text = core::read_untrusted_file(artifacts_.path(output.digest), output.bytes);
    auto cells = text ? notebook_cells(*text, limit - picture_bytes_) : json();
    if (cells.is_null()) return;
    picture_bytes_ += output.bytes;
    pictures_.push_back({{"name", name}, {"cells", std::move(cells)}});
    return;
  }
  if (!is_picture_name(output.file_name)) return;
  if (limits_.pictures == 0) {
    const auto is_known =
        std::ranges::any_of(pictures_, [&](const json& one) { return one["name"] == name; });
    if (!is_known && pictures_.size() < max_listed)
      pictures_.push_back({{"name", name}, {"digest", output.digest.hex()}});
    return;
  }
  const auto encoded = (output.bytes + 2) / 3 * 4;
  if (output.bytes > limits_.pictures || picture_bytes_ + encoded > limits_.pictures) return;
  const auto bytes = core::read_untrusted_file(artifacts_.path(output.digest), output.bytes);
  const auto* type = bytes ? picture_type(*bytes) : nullptr;
  if (!type) return;
  picture_bytes_ += encoded;
  pictures_.push_back(
      {{"name", name},
       {"url", std::string("data:") + type + ";base64," + core::encode_base64(*bytes)}});
}

json RunData::failures() const {
  constexpr std::size_t max_groups = 50, max_names = 50, max_lines = 20;
  auto list = json::array();
  for (auto& [steps, failure, matrix] : model::group_failures(store::failures_of(steps_))) {
    if (list.size() == max_groups) break;
    json entry{{"c", steps.size()}, {"m", failure.message.substr(0, max_message)}};
    if (list.empty())
      if (const auto rank = first_failed_rank(store_.attempts(), run_.id, steps.front()))
        entry["rf"] = *rank;
    if (steps.size() > max_names) steps.resize(max_names);
    entry["n"] = std::move(steps);
    if (!failure.hints.empty()) entry["h"] = std::move(failure.hints);
    auto& lines = failure.details;
    if (lines.size() > max_lines)
      lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(max_lines));
    if (!lines.empty()) entry["d"] = std::move(lines);
    list.push_back(std::move(entry));
  }
  return list;
}

json RunData::headlines() {
  auto list = json::array();
  for (const auto& [now, last, best] : headline_history(store_, run_)) {
    json entry{{"n", (now.instances > 1 ? now.step : now.instance) + "." + now.name},
               {"v", now.value}};
    if (is_better_lower(now.name)) entry["low"] = true;
    if (now.instances > 1) {
      entry["i"] = now.instances;
      entry["w"] = now.instance;
      entry["a"] = now.mean;
    }
    if (last) entry["l"] = {last->run, last->value};
    if (best) entry["b"] = {best->run, best->value};
    list.push_back(std::move(entry));
  }
  return list;
}

json RunData::published() {
  auto list = json::array();
  for (const auto& name : store_.published().names()) {
    const auto all = store_.published().find(name);
    for (const auto& version : all.versions)
      if (version.run == run_.id)
        list.push_back({name + "@" + std::to_string(version.version),
                        version.step + "." + version.output.name, version.output.digest.hex()});
  }
  return list;
}

json RunData::metrics() {
  constexpr std::size_t max_metrics = 20'000;
  auto metrics = store_.metrics().list(run_.id);
  if (metrics.size() > max_metrics) metrics.resize(max_metrics);
  const auto curves =
      std::ranges::count_if(metrics, [](const auto& one) { return one.points > 1; });
  const auto points_each = points_of_each(static_cast<std::size_t>(curves), limits_.curves);
  auto list = json::array();
  for (const auto& metric : metrics) {
    json entry{{"step", metric.step},
               {"name", metric.name},
               {"last", store::number_json(metric.last.value)},
               {"points", metric.points}};
    if (is_better_lower(metric.name)) entry["low"] = true;
    if (metric.points > 1 && limits_.details)
      add_curve(store_.metrics().points(metric), {}, points_each, entry);
    list.push_back(std::move(entry));
  }
  return list;
}

json RunData::Names::list() const {
  std::vector<std::string> list(positions_.size());
  for (const auto& [name, position] : positions_) list[position] = name;
  return list;
}

ReportLimits limits_for(std::size_t steps) {
  // Bytes of all data in the page, of a step in it, and of a point of a curve.
  constexpr std::size_t page = 4'400'000, bytes_of_step = 360, bytes_of_point = 25;
  constexpr std::size_t min_left = 200'000;
  const auto left = std::max(min_left, page - std::min(page, steps * bytes_of_step));
  ReportLimits limits;  // Logs and pictures get two fifths each of what is left, curves the rest.
  limits.logs = std::min(limits.logs, left * 2 / 5);
  limits.pictures = std::min(limits.pictures, left * 2 / 5);
  limits.curves.all_points = std::min(limits.curves.all_points, left / 5 / bytes_of_point);
  return limits;
}

json report_data(store::RunStore& store, const store::ArtifactStore& artifacts,
                 const store::RunRecord& run, const ReportLimits& limits) {
  return RunData(store, artifacts, run, limits).all();
}

}  // namespace pipeline::report
