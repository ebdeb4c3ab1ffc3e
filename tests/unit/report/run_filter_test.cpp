#include "report/run_filter.hpp"

#include <gtest/gtest.h>

#include "core/diagnostic.hpp"

namespace pipeline::report {
namespace {

TEST(RunFilter, text_that_is_not_an_expression_is_refused) {
  for (const auto* text : {"params.c >", "(a", "a b", "= 3", "'open"})
    EXPECT_THROW(RunFilter{text}, core::InputError) << text;
}

TEST(RunFilter, names_become_references) {
  EXPECT_EQ(with_references("params.c > 1e-3 and not metrics.train.c-1.x == 'params.c'"),
            "${params.c} > 1e-3 and not ${metrics.train.c-1.x} == 'params.c'");
  EXPECT_EQ(with_references("${params.a b} == true or status != \"and\""),
            "${params.a b} == true or ${status} != \"and\"");
  EXPECT_EQ(with_references(""), "");
}

}  // namespace
}  // namespace pipeline::report
