/// @file
/// Requests about the question of a step: to show it, and to record a person's answer.
#pragma once

#include "serve/request.hpp"
#include "serve/response.hpp"
#include "store/run_store.hpp"

namespace pipeline::serve {

/// Maximum size in bytes of the body of a request that answers a question.
inline constexpr std::size_t max_answer_body = 16 * 1024;

/// Returns true for an address that needs no token but the key of the question.
bool is_about_a_question(const PageRequest& request);

/// Returns the question of a step. Throws InputError if the step has asked none, or if the request
/// has neither the token nor the question's key.
Response show_question(store::RunStore& store, const PageRequest& request);

/// Records the answer in the request's body, once. Throws InputError for an answer that cannot be
/// recorded.
/// @param store is only read; the answer is written by an object of its own
Response take_answer(store::RunStore& store, const PageRequest& request);

}  // namespace pipeline::serve
