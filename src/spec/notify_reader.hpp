/// @file
/// Reads `notify` of a pipeline or a profile: the webhooks that are called when a run has ended.
#pragma once

#include <filesystem>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <pipeline/execution.hpp>

#include "settings/settings.hpp"

namespace pipeline::spec {

/// Reads `{url: ..., on: [...], format: ...}` or a list of those.
/// @param folder the folder that relative paths are resolved against
std::vector<NotifySpec> read_notify(const core::Value& value, const std::filesystem::path& folder,
                                    settings::Diagnostics& diagnostics);

nlohmann::json notify_schema();

/// Returns the document that read_notify() reads.
nlohmann::json notify_document(const std::vector<NotifySpec>& notify);

}  // namespace pipeline::spec
