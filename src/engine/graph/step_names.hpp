/// @file
/// Finds the steps of a run by their names.
#pragma once

#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <boost/unordered/unordered_flat_set.hpp>
#include <pipeline/spec.hpp>

#include "model/graph.hpp"

namespace pipeline::engine {

/// The indices of the steps, found by name. The names themselves are not kept a second time,
/// because a run may have 100,000 steps.
class StepNames {
 public:
  /// Keeps a reference to the steps, whose names must not change.
  explicit StepNames(const std::vector<const StepSpec*>& steps)
      : steps_(steps), indices_(0, Hash{steps}, Equal{steps}) {}
  StepNames(const StepNames&) = delete;
  StepNames& operator=(const StepNames&) = delete;

  /// Adds the steps that the list has received since the last call.
  void update() {
    indices_.reserve(steps_.size());
    for (; added_ < steps_.size(); ++added_) indices_.insert(static_cast<model::StepIndex>(added_));
  }
  /// Throws std::out_of_range.
  model::StepIndex at(std::string_view name) const {
    const auto found = indices_.find(name);
    if (found == indices_.end())
      throw std::out_of_range("the run has no step '" + std::string(name) + "'");
    return *found;
  }

 private:
  struct Names {
    using is_transparent = void;
    const std::vector<const StepSpec*>& steps;
    std::string_view name_of(model::StepIndex i) const { return steps[i]->name; }
    std::string_view name_of(std::string_view name) const { return name; }
  };
  struct Hash : Names {
    std::size_t operator()(const auto& step) const {
      return std::hash<std::string_view>()(this->name_of(step));
    }
  };
  struct Equal : Names {
    bool operator()(const auto& a, const auto& b) const {
      return this->name_of(a) == this->name_of(b);
    }
  };

  const std::vector<const StepSpec*>& steps_;
  boost::unordered_flat_set<model::StepIndex, Hash, Equal> indices_;
  std::size_t added_ = 0;
};

}  // namespace pipeline::engine
