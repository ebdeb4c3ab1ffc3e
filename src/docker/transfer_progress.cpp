#include "docker/transfer_progress.hpp"

#include <algorithm>

#include "core/excerpt.hpp"
#include "core/quantity.hpp"
#include "docker/engine_api.hpp"
#include "docker/engine_errors.hpp"
#include "docker/json_text.hpp"

namespace pipeline::docker {
namespace {

/// Maximum number of layers whose bytes are counted; an image has at most some hundred.
constexpr std::size_t max_layers = 1000, max_layer_name = 200;

/// Returns true for statuses that are reported for every layer before its transfer.
bool is_noise(std::string_view status) { return status == "Preparing" || status == "Waiting"; }

}  // namespace

TransferProgress::TransferProgress(std::string what, std::string registry,
                                   std::function<void(std::string_view)> on_line)
    : what_(std::move(what)),
      registry_(std::move(registry)),
      on_line_(std::move(on_line)),
      lines_([this](const nlohmann::json& message) { take(message); }) {}

void TransferProgress::finish() {
  lines_.finish();
  if (!error_.empty())
    throw EngineError(500, "cannot " + what_ + ": " + error_, advice_for(error_, registry_));
}

void TransferProgress::take(const nlohmann::json& message) {
  if (!message.is_object()) return;
  if (const auto error = text_at(message, "error"); !error.empty()) error_ = core::excerpt(error);
  if (const auto aux = message.find("aux"); aux != message.end() && aux->is_object())
    if (const auto digest = text_at(*aux, "Digest"); !digest.empty())
      pushed_.digest = core::excerpt(digest);
  const auto status = text_at(message, "status"), layer = text_at(message, "id");
  if (status.empty()) return;
  const auto progress = message.find("progressDetail");
  // States of progress bars arrive ten times a second.
  if (progress != message.end() && progress->is_object() && !progress->empty()) {
    if (layer.size() > max_layer_name || (sizes_.size() >= max_layers && !sizes_.contains(layer)))
      return;
    auto& size = sizes_[layer];
    const auto moved = number_at(*progress, "current"), total = number_at(*progress, "total");
    size = std::max({size, moved, total});
    report_bytes(status, layer, moved, total);
    return;
  }
  count(layer, status);
  if (on_line_ && !is_noise(status)) on_line_(layer.empty() ? status : layer + ": " + status);
}

/// Reports the progress at each tenth, but not more often than every 10 MB. The total grows,
/// because the size of a waiting layer is not known yet.
void TransferProgress::report_bytes(const std::string& status, const std::string& layer,
                                    std::uint64_t moved, std::uint64_t total) {
  constexpr std::uint64_t min_interval = 10'000'000;
  if (!on_line_ || (status != "Downloading" && status != "Pushing")) return;
  moved_[layer] = {moved, std::max(moved, total)};
  std::uint64_t all_moved = 0, all = 0;
  for (const auto& [name, bytes] : moved_) all_moved += bytes.first, all += bytes.second;
  if (all_moved < reported_ + std::max(min_interval, all / 10)) return;
  reported_ = all_moved;
  on_line_(status + " " + core::format_bytes(all_moved) + " of " + core::format_bytes(all));
}

void TransferProgress::count(const std::string& layer, const std::string& status) {
  if (status == "Pushed") {
    ++pushed_.sent;
    pushed_.bytes += sizes_[layer];
  } else if (status == "Layer already exists" || status.starts_with("Mounted from ")) {
    ++pushed_.existing;
  }
}

}  // namespace pipeline::docker
