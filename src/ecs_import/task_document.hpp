/// @file
/// Reads an Amazon ECS task definition key by key. What ECS would reject is an error; what ECS
/// supports and pipe does not is a notice.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/value.hpp"
#include "ecs_import/task_keys.hpp"
#include "settings/settings.hpp"

namespace pipeline::ecs_import {

/// Maximum size in MiB, so that the size in bytes fits into 64 bits.
inline constexpr std::int64_t max_mebibytes = std::int64_t{1} << 40;

/// Returns true for a value that counts as absent: empty, 0 or false, as in the AWS CLI's skeleton.
bool is_blank(const core::Value& value);

/// Returns the key's value; null if it is absent or null in the document.
const core::Value* given(const core::Value& map, std::string_view key);

class TaskDocument {
 public:
  TaskDocument(settings::Diagnostics& diagnostics, settings::Diagnostics& notices)
      : diagnostics_(diagnostics), notices_(notices) {}

  settings::Diagnostics& diagnostics() { return diagnostics_; }
  /// Reports what ECS would reject.
  void report_error(std::string message, core::Span span, std::vector<std::string> notes = {});
  /// Reports a feature that ECS supports and pipe does not.
  void report_unsupported(std::string message, core::Span span);

  /// Reports keys that ECS does not know, and those that pipe does not support.
  /// @param label the map's name for messages, such as `container 'train'`
  void check_keys(const core::Value& map, std::span<const TaskKey> known, const std::string& label);
  /// Returns the value as a whole number; reports another value, and a number out of the range.
  std::optional<std::int64_t> whole_number(const std::string& key, const core::Value& value,
                                           std::int64_t min, std::int64_t max);
  /// Returns the key's map, or null; reports another value.
  const core::Value* map_at(const std::string& key, const core::Value& parent);
  /// Returns the maps of the key's list; reports items that are not maps.
  std::vector<const core::Value*> maps(const std::string& key, const core::Value& map);
  /// Returns the key's text; reports a missing one.
  std::optional<std::string> text(const std::string& key, const core::Value& map);

 private:
  settings::Diagnostics& diagnostics_;
  settings::Diagnostics& notices_;
};

}  // namespace pipeline::ecs_import
