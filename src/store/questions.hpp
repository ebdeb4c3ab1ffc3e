/// @file
/// Questions of steps to persons (`wait`), and their answers.
#pragma once

#include <map>
#include <string>

#include "store/run_store.hpp"

namespace pipeline::store {

struct Question {
  std::string text;
  WallTime asked{};
  std::string answer;  ///< `yes` or `no`; empty while nobody has answered.
  std::string who;     ///< The user, `ana@host`.
  WallTime answered{};
  std::string note;
};

/// Returns the questions of a run by their steps.
std::map<std::string, Question> questions_of(RunStore& store, const std::string& run);
/// Records a step's question, or its answer.
void put_question(RunStore& store, const std::string& run, const std::string& step,
                  const Question& question);

}  // namespace pipeline::store
