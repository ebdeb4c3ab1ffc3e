#include "orchestrators/kubernetes/merge.hpp"

#include <algorithm>

namespace pipeline::orchestrators::kubernetes {
namespace {

using nlohmann::json;

bool is_named(const json& list) {
  return list.is_array() && !list.empty() &&
         std::all_of(list.begin(), list.end(), [](const json& item) {
           return item.is_object() && item.contains("name") && item["name"].is_string();
         });
}

void merge_lists(json& list, const json& patch) {
  for (const auto& item : patch) {
    const auto same = std::find_if(list.begin(), list.end(),
                                   [&](const json& each) { return each["name"] == item["name"]; });
    if (same == list.end())
      list.push_back(item);
    else
      merge_patch(*same, item);
  }
}

}  // namespace

void merge_patch(json& object, const json& patch) {
  if (is_named(object) && is_named(patch)) return merge_lists(object, patch);
  if (!patch.is_object()) {
    object = patch;
    return;
  }
  if (!object.is_object()) object = json::object();
  for (const auto& [key, value] : patch.items()) {
    if (value.is_null())
      object.erase(key);
    else
      merge_patch(object[key], value);
  }
}

}  // namespace pipeline::orchestrators::kubernetes
