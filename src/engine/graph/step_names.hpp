/// @file
/// Finds the steps of a run by their names.
#pragma once

#include <bit>
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <pipeline/spec.hpp>

#include "model/graph.hpp"

namespace pipeline::engine {

/// A hash table of the steps' indices. It takes some 10 bytes a step, because a run may have
/// 100,000.
class StepNames {
 public:
  /// Keeps a reference to the steps, whose names must not change.
  explicit StepNames(const std::vector<const StepSpec*>& steps) : steps_(steps) {}
  StepNames(const StepNames&) = delete;
  StepNames& operator=(const StepNames&) = delete;

  /// Adds the steps that the list has received since the last call.
  void update() {
    if (table_.size() <= 2 * steps_.size()) {  // At least half of the table stays free.
      table_.assign(std::bit_ceil(2 * steps_.size() + 1), none);
      size_ = 0;
    }
    for (; size_ < steps_.size(); ++size_)
      if (auto& entry = table_[slot_of(steps_[size_]->name)]; entry == none)
        entry = static_cast<model::StepIndex>(size_);
  }
  /// Throws std::out_of_range.
  model::StepIndex at(std::string_view name) const {
    const auto i = table_.empty() ? none : table_[slot_of(name)];
    if (i == none) throw std::out_of_range("the run has no step '" + std::string(name) + "'");
    return i;
  }

 private:
  static constexpr auto none = static_cast<model::StepIndex>(-1);

  /// Returns the place of the name in the table, or the free place for it.
  std::size_t slot_of(std::string_view name) const {
    const auto last = table_.size() - 1;
    auto slot = std::hash<std::string_view>()(name) & last;
    while (table_[slot] != none && steps_[table_[slot]]->name != name) slot = (slot + 1) & last;
    return slot;
  }

  const std::vector<const StepSpec*>& steps_;
  std::vector<model::StepIndex> table_;  ///< Its size is a power of two.
  std::size_t size_ = 0;                 ///< The number of steps in the table.
};

}  // namespace pipeline::engine
