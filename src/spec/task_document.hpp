/// @file
/// An Amazon ECS task definition, read key by key: what ECS would not take is wrong, what it does
/// and pipe does not is a notice.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/value.hpp"
#include "settings/settings.hpp"
#include "spec/task_keys.hpp"

namespace pipeline::spec {

inline constexpr std::int64_t most_mebibytes = std::int64_t{1} << 40;

/// As if the key were not there: what the command line's skeleton writes.
bool is_blank(const core::Value& value);

/// The key's value, if it is there and not null.
const core::Value* given(const core::Value& map, std::string_view key);

class TaskDocument {
 public:
  TaskDocument(settings::Diagnostics& diagnostics, settings::Diagnostics& notices)
      : diagnostics_(diagnostics), notices_(notices) {}

  settings::Diagnostics& diagnostics() { return diagnostics_; }
  void wrong(std::string message, core::Span span, std::vector<std::string> notes = {});
  void notice(std::string message, core::Span span);

  /// @param place of the map, for messages: `container 'train'`
  void check_keys(const core::Value& map, std::span<const TaskKey> known, const std::string& place);
  std::optional<std::int64_t> whole(const std::string& key, const core::Value& value,
                                    std::int64_t least, std::int64_t most);
  /// The maps of the key's list; what is none is reported.
  std::vector<const core::Value*> maps(const std::string& key, const core::Value& map);
  /// The key's text, which must be there.
  std::optional<std::string> text(const std::string& key, const core::Value& map);

 private:
  settings::Diagnostics& diagnostics_;
  settings::Diagnostics& notices_;
};

}  // namespace pipeline::spec
