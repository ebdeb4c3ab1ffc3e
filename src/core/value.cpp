#include "core/value.hpp"

#include <algorithm>

namespace pipeline::core {

const Value* Value::find(std::string_view key) const {
  const auto member = std::find_if(members.begin(), members.end(),
                                   [&](const auto& pair) { return pair.first.scalar == key; });
  return member == members.end() ? nullptr : &member->second;
}

}  // namespace pipeline::core
