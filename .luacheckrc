std = "lua54"
max_line_length = 100
codes = true
include_files = {"lua", "spec", "scripts", ".luacheckrc"}
-- The luma program has it as a global; scripts and specs still name what they use by require.
read_globals = {}
files["spec"].std = "+busted"
files["scripts/examples"].read_globals = {"luma"}
