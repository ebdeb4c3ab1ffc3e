/// @file
/// The questions of a run's steps to persons, as data of the pages.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "store/questions.hpp"

namespace pipeline::report {

nlohmann::json question_entry(const std::string& step, const store::Question& question);
/// Returns the questions of a run, by their steps.
nlohmann::json question_list(store::RunStore& store, const std::string& run);

}  // namespace pipeline::report
