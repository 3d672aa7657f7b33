-- paths.lua -- where the user's files are: the history and init.lua. Layer: repl.
local getenv = os.getenv

-- A folder by XDG's rules: the variable where it is absolute, or one under HOME. nil: no HOME.
local function folder(variable, under_home)
    local named = getenv(variable)
    if named and named:sub(1, 1) == "/" then return named end
    local home = getenv("HOME")
    return home and home .. under_home
end

local state, config = folder("XDG_STATE_HOME", "/.local/state"), folder("XDG_CONFIG_HOME", "/.config")
return {
    state_folder = state and state .. "/luma",
    history = state and state .. "/luma/history",
    init = config and config .. "/luma/init.lua",
}
