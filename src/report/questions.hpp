/// @file
/// The questions that steps of a run ask persons, as JSON for the pages.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "store/questions.hpp"

namespace pipeline::report {

/// Returns a step's question and its answer. Times are in milliseconds since 1970; `answer`, `who`
/// and `note` are empty while nobody has answered.
nlohmann::json question_entry(const std::string& step, const store::Question& question);
/// Returns a list with the question_entry() of each step of the run that has asked.
nlohmann::json question_list(store::RunStore& store, const std::string& run);

}  // namespace pipeline::report
