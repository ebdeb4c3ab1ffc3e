#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "code/python_imports.hpp"
#include "code/shell_words.hpp"

namespace pipeline::code {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::ostream& print(std::ostream& out, const PythonImport& import) {
  out << std::string(import.level, '.') << import.module;
  for (const auto& name : import.names) out << ' ' << name;
  return out << " @" << import.line;
}

std::vector<std::string> imports(std::string_view source) {
  std::vector<std::string> found;
  for (const auto& import : python_imports(source)) {
    std::ostringstream text;
    print(text, import);
    found.push_back(text.str());
  }
  return found;
}

TEST(PythonImports, all_forms_of_the_statement_are_found) {
  EXPECT_THAT(imports("import a\nimport b.c as d, e\n"), ElementsAre("a @1", "b.c @2", "e @2"));
  EXPECT_THAT(
      imports("from a import b, c as d\nfrom .x import y\nfrom . import z\nfrom ...p.q import *\n"),
      ElementsAre("a b c @1", ".x y @2", ". z @3", "...p.q * @4"));
  EXPECT_THAT(imports("from a import (  # why\n    b,\n    c as cc,\n)\nimport d\n"),
              ElementsAre("a b c @1", "d @5"));
  EXPECT_THAT(imports("from a \\\n  import b\n"), ElementsAre("a b @1"));
}

TEST(PythonImports, statements_are_found_in_all_blocks) {
  EXPECT_THAT(imports("def f():\n    import a\ntry:\n  import b\nexcept ImportError: import c\nx = "
                      "1; import d\nif x: from e import f\n"),
              ElementsAre("a @2", "b @4", "c @5", "d @6", "e f @7"));
  EXPECT_THAT(imports("if TYPE_CHECKING:\n\tfrom a import (b)\nclass C:\n    import c\n"),
              ElementsAre("a b @2", "c @4"));
}

TEST(PythonImports, strings_and_comments_are_not_taken_for_code) {
  EXPECT_THAT(imports("# import a\n'''\nimport b\n'''\nx = \"import c\"\ny = r'\\'; import d'\nz = "
                      "f\"\"\"\nfrom e import f\n\"\"\"\nimport real\n"),
              ElementsAre("real @10"));
  EXPECT_THAT(imports("x = 'never closed\nimport a\n"), ElementsAre("a @2"));
  EXPECT_THAT(imports("x = 'continued\\\r\nimport a'\r\nimport b\r\n"), ElementsAre("b @3"));
  EXPECT_THAT(imports("yield from x\nraise A from b\nimportant = 1\nobj.import_ = 2\nfrom_x = 3\n"),
              IsEmpty());
}

TEST(PythonImports, import_calls_with_a_literal_name_are_found) {
  EXPECT_THAT(imports("importlib.import_module('a.b')\n__import__(\"c\")\nimport_module(name)"
                      "\nimport_module('.x', "
                      "package='p.q')\nimport_module('..y', __package__)\n"),
              ElementsAre("a.b @1", "c @2", "p.q.x @4", "..y @5"));
  EXPECT_THAT(imports("import_module('..c', package='a.b')\nimport_module('..', 'a.b')\n"
                      "import_module('...c', 'a.b')\n"),
              ElementsAre("a.c @1", "a @2"));
}

std::vector<std::string> words(std::string_view script) {
  std::vector<std::string> found;
  for (auto& word : shell_words(script)) {
    std::replace(word.text.begin(), word.text.end(), unknown_value, '?');
    found.push_back(word.text + "@" + std::to_string(word.line));
  }
  return found;
}

TEST(ShellWords, quotes_and_operators_are_resolved) {
  EXPECT_THAT(words("python 'a b.py' \"c\"d e\\ f;x&&y|z>out\n. lib.sh # no\n"),
              ElementsAre("python@1", "a b.py@1", "cd@1", "e f@1", "x@1", "y@1", "z@1", "out@1",
                          ".@2", "lib.sh@2"));
  EXPECT_THAT(words("a \\\n  b\n'c\nd' e\n"), ElementsAre("a@1", "b@2", "c\nd@3", "e@4"));
}

TEST(ShellWords, expansions_by_the_shell_are_unknown) {
  EXPECT_THAT(words("$A ${B:-x}/c \"$D/e.sh\" $1 $ \"\\$F\""),
              ElementsAre("?@1", "?/c@1", "?/e.sh@1", "?@1", "$@1", "$F@1"));
  EXPECT_THAT(words(". \"$(dirname \"$0\")/lib.sh\" `cat v.txt` $((1<<2)) x"),
              ElementsAre(".@1", "dirname@1", "?@1", "?/lib.sh@1", "cat@1", "v.txt@1", "?@1", "?@1",
                          "x@1"));
}

TEST(ShellWords, here_documents_are_left_out) {
  EXPECT_THAT(
      words("cat <<EOF >out\ndon't read this\nEOF\nsh x.sh\npython - <<-'END'\n\timport "
            "a\n\tEND\nlast <<<word\n"),
      ElementsAre("cat@1", "out@1", "sh@4", "x.sh@4", "python@5", "-@5", "last@8", "word@8"));
}

}  // namespace
}  // namespace pipeline::code
