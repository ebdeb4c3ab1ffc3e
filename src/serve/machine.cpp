#include "serve/machine.hpp"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <optional>
#include <sstream>

#include <nlohmann/json.hpp>

#include "gpu/inventory.hpp"

namespace pipeline::serve {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

std::optional<Ticks> read_ticks() {
  std::ifstream file("/proc/stat");
  std::string word;
  if (!(file >> word) || word != "cpu") return std::nullopt;
  Ticks ticks;
  constexpr int idle = 3, waits_for_disk = 4,
                counted = 8;  // See proc(5); the time of guests is a part of the user's.
  for (int i = 0; i < counted; ++i) {
    std::uint64_t value = 0;
    if (!(file >> value)) break;
    ticks.all += value;
    if (i == idle || i == waits_for_disk) ticks.idle += value;
  }
  return ticks;
}

/// Returns the total and the used bytes. Memory that the kernel can free at once is not counted as
/// used.
json memory_json() {
  std::ifstream file("/proc/meminfo");
  std::uint64_t total = 0, available = 0;
  constexpr std::uint64_t kilo = 1024;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t value = 0;
    words >> name >> value;
    if (name == "MemTotal:") total = value * kilo;
    if (name == "MemAvailable:") available = value * kilo;
  }
  if (total == 0) return nullptr;
  return {{"total", total}, {"used", total - std::min(total, available)}};
}

json disk_json(const std::filesystem::path& folder) {
  struct statvfs about {};
  if (::statvfs(folder.c_str(), &about) != 0) return nullptr;
  return {{"total", std::uint64_t{about.f_blocks} * about.f_frsize},
          {"used", std::uint64_t{about.f_blocks - about.f_bfree} * about.f_frsize}};
}

json gpus_json(gpu::Machine& machine) {
  auto list = json::array();
  for (const auto& device : machine.read().devices) {
    auto processes = json::array();
    for (const auto& process : device.processes)
      processes.push_back(
          {{"pid", process.pid}, {"name", process.name}, {"memory", process.memory}});
    list.push_back({{"index", device.index},
                    {"model", device.model},
                    {"memory", device.memory},
                    {"memory_used", device.memory_used},
                    {"trouble", device.trouble},
                    {"processes", std::move(processes)}});
    if (device.load) list.back()["load"] = *device.load;
  }
  return list;
}

class MachineFeed final : public Feed {
 public:
  explicit MachineFeed(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::string next() override {
    constexpr std::chrono::seconds pause{2};
    const auto now = Clock::now();
    if (last_ && now - *last_ < pause) return {};
    last_ = now;
    json entry{{"memory", memory_json()}, {"disk", disk_json(folder_)}};
    entry["gpus"] = gpus_json(gpus_);
    entry["processors"] = ::sysconf(_SC_NPROCESSORS_ONLN);
    std::array<double, 3> load{};
    if (::getloadavg(load.data(), static_cast<int>(load.size())) > 0) entry["load"] = load[0];
    const auto ticks = read_ticks();
    if (const auto busy = ticks && ticks_ ? busy_part(*ticks_, *ticks) : std::nullopt)
      entry["busy"] = *busy;
    ticks_ = ticks;
    return event_text("machine", entry);
  }

 private:
  std::filesystem::path folder_;
  gpu::Machine gpus_;
  std::optional<Clock::time_point> last_;
  std::optional<Ticks> ticks_;
};

}  // namespace

std::optional<double> busy_part(const Ticks& before, const Ticks& after) {
  if (after.all <= before.all) return std::nullopt;
  const auto all = after.all - before.all;
  const auto idle = after.idle > before.idle ? after.idle - before.idle : 0;
  return 1.0 - static_cast<double>(std::min(idle, all)) / static_cast<double>(all);
}

std::unique_ptr<Feed> machine_feed(std::filesystem::path folder) {
  return std::make_unique<MachineFeed>(std::move(folder));
}

}  // namespace pipeline::serve
