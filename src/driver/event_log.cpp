#include "driver/event_log.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "model/event_json.hpp"

namespace pipeline::driver {

namespace {

using store::events_prefix;
constexpr std::string_view events_suffix = ".jsonl";

std::int64_t event_time() {
  return std::chrono::time_point_cast<WallTime::duration>(WallTime::clock::now())
      .time_since_epoch()
      .count();
}

}  // namespace

std::vector<std::filesystem::path> event_logs(const store::RunStore& store,
                                              const std::string& run) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(store.paths().log_file(run), error)) {
    const auto name = entry.path().filename().string();
    if (name.starts_with(events_prefix) && name.ends_with(events_suffix))
      files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

EventLog::EventLog(const store::RunStore& store, const std::string& run) {
  // The time orders the logs of a run's drivers, even of drivers that share no files.
  const auto file =
      store.paths().log_file(run + "/" + std::string(events_prefix) + std::to_string(event_time()) +
                             std::string(events_suffix));
  core::make_folders(file.parent_path());
  file_ = core::Descriptor(
      ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!file_) throw core::system_error("cannot write " + file.string(), errno);
}

void EventLog::add(const Event& event) {
  if (std::holds_alternative<event::StepLog>(event) ||
      std::holds_alternative<event::StepProgress>(event))
    return;
  auto object = model::to_json(event);
  object["at"] = event_time();
  add(object);
}

void EventLog::add(const nlohmann::json& object) {
  core::write_all(file_.get(),
                  object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace pipeline::driver
