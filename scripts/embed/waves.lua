-- waves.lua -- draws waves of colour into the host's frame, one frame a call.
local luma = require "luma"
local height, width = frame.shape[1], frame.shape[2]
local y = luma.range(0, height - 1):to("float32"):reshape(height, 1)
local x = luma.range(0, width - 1):to("float32"):reshape(1, width)
local distance = ((x - width / 2) ^ 2 + (y * 2 - height) ^ 2):sqrt()

function draw(picture, time)
    for channel = 1, 3 do
        local wave = ((distance / 4 - time * 8 + channel):sin() + 1) * 127
        picture[{{}, {}, channel}] = wave:to("uint8")
    end
    if button "fire" and time == 0 then print("fire", picture.dtype, #picture) end
end
