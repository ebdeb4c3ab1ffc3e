#include "store/questions.hpp"

#include <gtest/gtest.h>

#include "core/diagnostic.hpp"
#include "unit/store/run_store_fixture.hpp"

namespace pipeline::store {
namespace {

TEST_F(RunStoreTest, a_key_is_made_for_a_question_and_leaves_the_others_as_they_are) {
  RunStore store(state);
  store.runs().add(run_record("r1"));
  put_question(store, "r1", "deploy", {.text = "Deploy?"});
  put_question(store, "r1", "erase", {.text = "Erase?"});
  const auto key = make_answer_key(store, "r1", "deploy");
  const auto questions = questions_of(store, "r1");
  EXPECT_TRUE(is_answer_key(questions.at("deploy"), key));
  EXPECT_FALSE(is_answer_key(questions.at("erase"), key));
  EXPECT_EQ(questions.at("deploy").text, "Deploy?");
}

TEST_F(RunStoreTest, no_key_takes_the_place_of_a_question_that_cannot_be_read) {
  const std::string unknown = R"({"deploy":["of a later version"]})";
  RunStore store(state);
  store.runs().add(run_record("r1"));
  store.key_values().put(questions_kind, "r1", unknown);
  EXPECT_THROW(make_answer_key(store, "r1", "deploy"), core::InputError);
  EXPECT_EQ(store.key_values().find(questions_kind, "r1"), unknown);
}

TEST_F(RunStoreTest, an_answer_whose_note_is_not_utf8_is_refused_and_the_question_stays_open) {
  RunStore store(state);
  auto run = run_record("r1");
  run.status = RunStatus::running;
  store.runs().add(run);
  put_question(store, "r1", "deploy", {.text = "Deploy?"});
  EXPECT_THROW(answer_question(store, run, "deploy", {.yes_or_no = "yes", .note = "caf\xe9"}),
               core::InputError);
  EXPECT_EQ(questions_of(store, "r1").at("deploy").answer, "");
}

}  // namespace
}  // namespace pipeline::store
