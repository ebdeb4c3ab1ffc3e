#include "report/notebook_cells.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace pipeline::report {
namespace {

using nlohmann::json;

TEST(NotebookCells, keep_texts_and_pictures_and_no_content_that_runs_or_loads) {
  const json notebook{
      {"cells",
       {{{"cell_type", "markdown"}, {"source", {"# Title\n", "text"}}},
        {{"cell_type", "code"},
         {"source", "train()"},
         {"outputs",
          {{{"output_type", "stream"}, {"name", "stdout"}, {"text", {"a\n", "\x1b[31mb\x1b[0m"}}},
           {{"output_type", "display_data"},
            {"data", {{"text/html", "<script>alert(1)</script>"}, {"text/plain", "table"}}}},
           {{"output_type", "display_data"},
            {"data", {{"image/png", "aGVsbG8=\n"}, {"text/plain", "figure"}}}},
           {{"output_type", "display_data"},
            {"data", {{"image/png", "\" onerror=alert(1)"}, {"text/plain", "no picture"}}}},
           {{"output_type", "display_data"},
            {"data", {{"text/html", {"<table>\n", "</table>"}}, {"text/plain", "table"}}}},
           {{"output_type", "display_data"},
            {"data", {{"text/html", "<b>1 < 2</b><LINK\nrel=preconnect>"}}}},
           {{"output_type", "display_data"}, {"data", {{"image/jpeg", "aGVsbG8="}}}},
           {{"output_type", "error"}, {"traceback", {"\x1b[0;31mValueError\x1b[0m", "no"}}}}}}}}};
  const auto left_out = [](const std::string& element) {
    return "(HTML with <" + element +
           ">, which could run or load something, is left out: display a picture to have it here)";
  };
  const json expected{{{"k", "markdown"}, {"s", "# Title\ntext"}},
                      {{"k", "code"},
                       {"s", "train()"},
                       {"o",
                        {{{"t", "a\nb"}},
                         {{"t", "table\n" + left_out("script")}},
                         {{"p", "aGVsbG8=\n"}},
                         {{"t", "no picture"}},
                         {{"h", "<table>\n</table>"}},
                         {{"t", left_out("link")}},
                         {{"t", "ValueError\nno\n"}}}}}};
  EXPECT_EQ(notebook_cells(notebook.dump(), 10'000), expected);
}

TEST(NotebookCells, other_files_and_large_ones_are_left_out) {
  for (const auto* text : {"", "[]", "{}", R"({"cells": 1})", R"({"cells": [{}]})",
                           R"({"cells": [{"cell_type": "code", "source": 5}]})",
                           R"({"cells": [{"cell_type": "code", "source": "", "outputs": [1]}]})"})
    EXPECT_TRUE(notebook_cells(text, 10'000).is_null()) << text;
  const json large{{"cells", {{{"cell_type", "code"}, {"source", std::string(1000, 'x')}}}}};
  EXPECT_TRUE(notebook_cells(large.dump(), 500).is_null());
  EXPECT_FALSE(notebook_cells(large.dump(), 2000).is_null());
}

}  // namespace
}  // namespace pipeline::report
