#include "store/record_texts.hpp"

#include <algorithm>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/identifier.hpp"

namespace pipeline::store {
namespace {

constexpr std::pair<LivenessProbe, std::string_view> probe_names[] = {
    {LivenessProbe::lock, "lock"}, {LivenessProbe::heartbeat, "heartbeat"}};

/// Moves probe and host from the end of the text to the driver.
void read_probe(Driver& driver, std::string& text) {
  const auto host = text.rfind(':');
  if (host == std::string::npos || host == 0) return;
  const auto kind = text.rfind(':', host - 1);
  if (kind == std::string::npos) return;
  for (const auto& [probe, name] : probe_names)
    if (std::string_view(text).substr(kind + 1, host - kind - 1) == name) {
      driver.probe = probe;
      driver.host = text.substr(host + 1);
      text.resize(kind);
      return;
    }
}

/// Calls `visit(name, member)` for each value that is measured of an attempt.
template <class Usage, class Phases, class Visit>
void visit_usage(Usage& usage, Phases& phases, Visit visit) {
  visit("user_us", usage.user);
  visit("system_us", usage.system);
  visit("peak_memory", usage.peak_memory);
  visit("memory_limit", usage.memory_limit);
  visit("read", usage.read);
  visit("written", usage.written);
  visit("memory_kills", usage.memory_kills);
  visit("waiting_ms", phases.waiting);
  visit("preparing_ms", phases.preparing);
  visit("transfers_ms", phases.transfers);
  visit("running_ms", phases.running);
  visit("storing_ms", phases.storing);
}

/// Calls `visit(name, member)` for each text that is known of an attempt.
template <class Attempt, class Visit>
void visit_texts(Attempt& attempt, Visit visit) {
  visit("code", attempt.code);
  visit("node", attempt.node);
  visit("image", attempt.image);
  visit("stored", attempt.stored);
}

nlohmann::json write_gpu_usage(const std::vector<core::GpuUsage>& gpus) {
  const auto number = [](const std::optional<double>& value) {
    return value ? nlohmann::json(*value) : nlohmann::json();
  };
  auto list = nlohmann::json::array();
  for (const auto& gpu : gpus)
    list.push_back({gpu.uuid, number(gpu.mean_load), number(gpu.peak_load), gpu.mean_memory,
                    gpu.peak_memory, gpu.memory});
  return list;
}

std::vector<core::GpuUsage> read_gpu_usage(const nlohmann::json& list) try {
  const auto number = [](const nlohmann::json& value) {
    return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
  };
  std::vector<core::GpuUsage> gpus;
  const auto bytes = [](const nlohmann::json& value) {
    return core::integer_of<std::uint64_t>(value);
  };
  for (const auto& row : list)
    gpus.push_back({row.at(0), number(row.at(1)), number(row.at(2)), bytes(row.at(3)),
                    bytes(row.at(4)), bytes(row.at(5))});
  return gpus;
} catch (const nlohmann::json::exception& error) {
  throw core::EnvironmentError(
      std::string("the run store is damaged: an attempt's usage of its GPUs cannot be read: ") +
      error.what());
}

/// Returns a measured value. Its bound keeps sums over many attempts below the largest integer.
std::int64_t measured_in(const nlohmann::json& value) try {
  return core::integer_within(value, 0, std::int64_t{1} << 50);
} catch (const nlohmann::json::exception& error) {
  throw core::EnvironmentError(
      std::string("the run store is damaged: the usage of an attempt cannot be read: ") +
      error.what());
}

nlohmann::json measured_of(const core::Usage& usage, const core::Phases& phases) {
  nlohmann::json entry;
  visit_usage(usage, phases, [&](const char* name, const auto& value) {
    if constexpr (requires { value->count(); }) {
      if (value) entry[name] = value->count();
    } else if (value) {
      entry[name] = *value;
    }
  });
  for (const auto& [awaited, time] : phases.waits) entry["waits"][awaited] = time.count();
  if (!usage.gpus.empty()) entry["gpus"] = write_gpu_usage(usage.gpus);
  return entry;
}

std::string json_text(const nlohmann::json& entry) {
  return entry.is_null() ? std::string()
                         : entry.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

nlohmann::json list_of(const std::string& text) {
  auto list = core::parse_json(text);
  if (!list.is_array()) throw std::invalid_argument("it is not a list");
  return list;
}

}  // namespace

std::string write_driver(const Driver& driver) {
  const auto& [context, name_space, name] = driver.lease;
  if (driver.has_lease()) return nlohmann::json{context, name_space, name}.dump();
  for (const auto& [probe, text] : probe_names)
    if (driver.probe == probe)
      return driver.process.started + ":" + std::string(text) + ":" + driver.host;
  return driver.process.started;
}

Driver read_driver(std::int64_t pid, std::string text) {
  Driver driver;
  if (!text.starts_with('[')) {
    read_probe(driver, text);
    driver.process = {pid, std::move(text)};
    return driver;
  }
  const auto lease = core::parse_json(text);
  if (lease.is_array() && lease.size() == 3 && lease[0].is_string() && lease[1].is_string() &&
      lease[2].is_string())
    driver.lease = {lease[0], lease[1], lease[2]};
  return driver;
}

std::string write_outputs(const std::vector<OutputRecord>& outputs) {
  auto list = nlohmann::json::array();
  for (const auto& output : outputs) {
    list.push_back(
        {output.name, output.file_name, output.digest.hex(), output.is_directory, output.bytes});
    if (output.temp) list.back().push_back("temp");
  }
  return list.dump();
}

std::vector<OutputRecord> read_outputs(const std::string& text) try {
  std::vector<OutputRecord> outputs;
  for (const auto& row : list_of(text)) {
    outputs.push_back({row.at(0), row.at(1), core::Digest::from_hex(row.at(2).get<std::string>()),
                       row.at(3), core::integer_of<std::uint64_t>(row.at(4)), row.size() > 5});
    // These names become parts of paths, and a run may have been downloaded from a bucket.
    for (const auto& name : {outputs.back().name, outputs.back().file_name})
      if (!core::is_name(name))
        throw std::invalid_argument("'" + core::printable(name) +
                                    "' is not the name of an output or its file");
  }
  return outputs;
} catch (const std::exception& error) {
  throw core::EnvironmentError(
      std::string("the run store is damaged: a row's outputs cannot be read: ") + error.what());
}

std::string write_gpus(const std::vector<event::Gpu>& gpus) {
  if (gpus.empty()) return {};
  auto list = nlohmann::json::array();
  for (const auto& gpu : gpus) {
    list.push_back({gpu.uuid, gpu.index, gpu.model});
    if (gpu.slice) list.back().push_back(*gpu.slice);
  }
  return list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::vector<event::Gpu> read_gpus(const std::string& text) try {
  std::vector<event::Gpu> gpus;
  if (!text.empty())
    for (const auto& row : list_of(text)) {
      gpus.push_back({row.at(0), core::integer_of<unsigned>(row.at(1)), row.at(2)});
      if (row.size() > 3) gpus.back().slice = core::integer_of<unsigned>(row.at(3));
    }
  return gpus;
} catch (const std::exception& error) {
  throw core::EnvironmentError(
      std::string("the run store is damaged: an attempt's GPUs cannot be read: ") + error.what());
}

std::string write_measured(const AttemptRecord& attempt) {
  auto entry = measured_of(attempt.usage, attempt.phases);
  visit_texts(attempt, [&](const char* name, const std::string& value) {
    if (!value.empty()) entry[name] = value;
  });
  if (attempt.was_preempted) entry["preempted"] = true;
  return json_text(entry);
}

void read_measured(const std::string& text, AttemptRecord& attempt) {
  if (text.empty()) return;
  const auto entry = core::parse_json(text);
  if (!entry.is_object())
    throw core::EnvironmentError(
        "the run store is damaged: the usage of an attempt cannot be read");
  visit_texts(attempt, [&](const char* name, std::string& value) {
    const auto found = entry.find(name);
    if (found != entry.end() && found->is_string()) value = *found;
  });
  attempt.was_preempted = entry.contains("preempted");
  if (!attempt.code.empty()) {
    try {
      core::Digest::from_hex(attempt.code);
    } catch (const std::invalid_argument& error) {
      throw core::EnvironmentError(
          std::string("the run store is damaged: the code of an attempt cannot be read: ") +
          error.what());
    }
  }
  if (const auto gpus = entry.find("gpus"); gpus != entry.end())
    attempt.usage.gpus = read_gpu_usage(*gpus);
  if (const auto waits = entry.find("waits"); waits != entry.end() && waits->is_object())
    for (const auto& [awaited, time] : waits->items())
      attempt.phases.waits[awaited] = std::chrono::milliseconds(measured_in(time));
  visit_usage(attempt.usage, attempt.phases,
              [&]<class Value>(const char* name, std::optional<Value>& value) {
                const auto found = entry.find(name);
                if (found != entry.end() && found->is_number_integer())
                  value = Value(measured_in(*found));
              });
}

std::string write_measured(const TaskRecord& task) {
  core::Phases phases;
  phases.running = task.running;
  auto entry = measured_of(task.usage, phases);
  if (task.node_rank > 0) entry["node_rank"] = task.node_rank;
  if (!task.gpus.empty()) entry["gpu_indices"] = task.gpus;
  if (task.has_failed_first) entry["failed_first"] = true;
  return json_text(entry);
}

void read_measured(const std::string& text, TaskRecord& task) {
  AttemptRecord attempt;
  read_measured(text, attempt);
  task.usage = std::move(attempt.usage);
  task.running = attempt.phases.running;
  if (text.empty()) return;
  const auto entry = core::parse_json(text);
  const auto number = [](const nlohmann::json& value) {
    return static_cast<unsigned>(measured_in(value));
  };
  if (const auto node = entry.find("node_rank"); node != entry.end())
    task.node_rank = number(*node);
  if (const auto gpus = entry.find("gpu_indices"); gpus != entry.end())
    for (const auto& index : *gpus) task.gpus.push_back(number(index));
  task.has_failed_first = entry.contains("failed_first");
}

std::string write_failure(const FailureRecord& failure) {
  if (failure == FailureRecord{}) return {};
  static constexpr std::size_t max_lines = 40, max_bytes = 2000;
  const auto list = [](const std::vector<std::string>& lines) {
    auto kept = nlohmann::json::array();
    for (auto i = lines.size() - std::min(lines.size(), max_lines); i < lines.size(); ++i)
      kept.push_back(lines[i].substr(0, max_bytes));
    return kept;
  };
  return nlohmann::json{
      {"kind", failure.kind}, {"hints", list(failure.hints)}, {"details", list(failure.details)}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

FailureRecord read_failure(const std::string& text) try {
  if (text.empty()) return {};
  const auto entry = core::parse_json(text);
  return {.kind = entry.at("kind"),
          .hints = entry.at("hints").get<std::vector<std::string>>(),
          .details = entry.at("details").get<std::vector<std::string>>()};
} catch (const nlohmann::json::exception& error) {
  throw core::EnvironmentError(
      std::string("the run store is damaged: a step's failure cannot be read: ") + error.what());
}

std::string write_parts(const std::vector<KeyPart>& parts) {
  auto list = nlohmann::json::array();
  for (const auto& part : parts) {
    auto& entry = list.emplace_back(nlohmann::json{part.name, part.value});
    if (!part.producer.empty()) entry.push_back(part.producer);
  }
  return list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::vector<KeyPart> read_parts(const std::string& text) {
  const auto list = core::parse_json(text);
  std::vector<KeyPart> parts;
  if (list.is_array())
    for (const auto& part : list)
      if (part.is_array() && part.size() >= 2 &&
          std::ranges::all_of(part, [](const auto& each) { return each.is_string(); }))
        parts.push_back(
            {part[0], part[1], part.size() > 2 ? part[2].get<std::string>() : std::string()});
  return parts;
}

}  // namespace pipeline::store
