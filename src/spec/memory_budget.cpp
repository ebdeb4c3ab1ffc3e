#include "spec/memory_budget.hpp"

#include "core/quantity.hpp"

namespace pipeline::spec {

bool MemoryBudget::take(std::size_t copies, std::size_t bytes, const std::string& maker,
                        core::Span place) {
  if (is_spent_) return false;
  if (copies == 0 || bytes <= left_ / copies) {
    left_ -= copies * bytes;
    return true;
  }
  is_spent_ = true;
  std::vector<std::string> notes;
  if (copies > 1)
    notes.push_back(std::to_string(copies) + " copies of " + core::format_bytes(bytes));
  settings::report(diagnostics_, "too-large",
                   maker + " takes too much memory: all steps of a pipeline have at most " +
                       core::format_bytes(model::max_step_memory) + " together",
                   place, std::move(notes), "put long texts into files that the steps read");
  return false;
}

}  // namespace pipeline::spec
