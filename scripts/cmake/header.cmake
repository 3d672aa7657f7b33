# Writes the luma.h that is installed: core/luma.h with a prototype and a sentence for every row of
# ops.def where the source includes it.
# cmake -DCORE=core -DOUTPUT=luma.h -P header.cmake
file(READ ${CORE}/luma.h header)
file(READ ${CORE}/ops.def rows)
# Lists of CMake treat these in ways of their own.
string(REPLACE "[" "@OPEN@" rows "${rows}")
string(REPLACE "]" "@SHUT@" rows "${rows}")
string(REPLACE ";" "@SEMI@" rows "${rows}")
string(REPLACE "\\\"" "@QUOTE@" rows "${rows}")

set(in "const luma_tensor *")
set(rest_UNARY "${in}x")
set(rest_TEST "${in}x")
set(rest_UNARY_P "${in}x,\n    luma_scalar p, luma_scalar q")
set(rest_BINARY "${in}x, ${in}y")
set(rest_COMPARE "${in}x, ${in}y")
set(rest_TERNARY "${in}x,\n    ${in}y, ${in}z")
set(rest_REDUCE "${in}x, int n,\n    const int64_t *dims, bool keepdim")

set(text "")
# A row begins a line and ends with its sentence.
string(REGEX MATCHALL "\n(UNARY|TEST|UNARY_P|BINARY|COMPARE|TERNARY|REDUCE)\\([a-z0-9_]+, [^\n]*(\n +[^\n]*)*\"\\)" found "${rows}")
foreach(row IN LISTS found)
  string(REGEX REPLACE "^\n([A-Z_]+)\\(([a-z0-9_]+), .*" "\\1" kind "${row}")
  string(REGEX REPLACE "^\n([A-Z_]+)\\(([a-z0-9_]+), .*" "\\2" name "${row}")
  string(REGEX REPLACE ".*\"([^\"]*)\"\\)$" "\\1" sentence "${row}")
  string(REGEX REPLACE "^[^\"]*\"([^\"]*)\".*" "\\1" quoted "${row}")
  if(kind STREQUAL "UNARY_P")
    set(sentence "${sentence} p and q: ${quoted}")
  endif()
  string(APPEND text "/* ${sentence} */\n"
    "LUMA_API luma_status luma_${name}(luma_state *S, luma_tensor *out, ${rest_${kind}})@SEMI@\n")
endforeach()
string(REPLACE "@QUOTE@" "\"" text "${text}")
string(REPLACE "@SEMI@" ";" text "${text}")
string(REPLACE "@OPEN@" "[" text "${text}")
string(REPLACE "@SHUT@" "]" text "${text}")

string(FIND "${header}" "#define LUMA_ROW1" first)
string(FIND "${header}" "#undef LUMA_ROW2\n" last)
if(first LESS 0 OR last LESS first OR text STREQUAL "")
  message(FATAL_ERROR "core/luma.h or ops.def is not as header.cmake knows it")
endif()
string(LENGTH "#undef LUMA_ROW2\n" length)
math(EXPR last "${last} + ${length}")
string(SUBSTRING "${header}" 0 ${first} before)
string(SUBSTRING "${header}" ${last} -1 after)
file(WRITE ${OUTPUT} "${before}${text}${after}")
