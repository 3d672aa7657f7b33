std = "lua54"
max_line_length = 110
codes = true
files["spec"].std = "lua54+busted"
files["scripts/embed"].globals = {"draw"}
files["scripts/embed"].read_globals = {"luma", "frame", "button"}
