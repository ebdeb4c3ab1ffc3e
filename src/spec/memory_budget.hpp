/// @file
/// Bounds the memory of a pipeline's steps while a file is read.
#pragma once

#include <string>

#include "model/step_memory.hpp"
#include "settings/decode.hpp"

namespace pipeline::spec {

/// The memory that the steps of one pipeline may still take, at first model::max_step_memory.
class MemoryBudget {
 public:
  explicit MemoryBudget(settings::Diagnostics& diagnostics) : diagnostics_(diagnostics) {}
  /// Takes memory for copies, before they are made. Returns false if there is not enough left,
  /// which the first such call reports.
  /// @param bytes the size of one copy
  /// @param maker the part of the file that makes the copies, as in `the matrix of step 'train'`,
  /// for the message
  bool take(std::size_t copies, std::size_t bytes, const std::string& maker, core::Span place);
  bool is_spent() const { return is_spent_; }

 private:
  settings::Diagnostics& diagnostics_;
  std::size_t left_ = model::max_step_memory;
  bool is_spent_ = false;
};

}  // namespace pipeline::spec
