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
  std::string who;     ///< The user, `ana@host`; on a page also the name that was typed.
  WallTime answered{};
  std::string note;
  std::string key_digest;  ///< SHA-256 of the key in the address that was sent; empty: none was.
};

/// An answer, before it is recorded.
struct Answer {
  std::string yes_or_no;
  std::string who;
  std::string note;
  WallTime when{};
};

/// Returns the questions of a run by their steps.
std::map<std::string, Question> questions_of(RunStore& store, const std::string& run);
/// Returns the question of a step that can be answered now. Throws InputError if the step has not
/// asked, was answered, or its run is not running.
Question open_question(RunStore& store, const RunRecord& run, const std::string& step);
/// Records a step's question.
void put_question(RunStore& store, const std::string& run, const std::string& step,
                  const Question& question);
/// Records the answer to a question that has none yet. Throws InputError as open_question() does.
/// @return the answered question
Question answer_question(RunStore& store, const RunRecord& run, const std::string& step,
                         const Answer& answer);
/// Makes a key that answers this question, and records its digest. Throws InputError if the step
/// has no question that can be read.
/// @return the key, 32 digits
std::string make_answer_key(RunStore& store, const std::string& run, const std::string& step);
/// Returns true if the key is that of the question.
bool is_answer_key(const Question& question, std::string_view key);
/// Returns the user of this process, `ana@host`.
std::string user_at_host();

}  // namespace pipeline::store
