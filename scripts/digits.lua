-- digits.lua: reads handwritten digits from a file, shows some, and tells them apart in two ways.
--     scripts/luma scripts/digits.lua
local luma = require "luma"

local TRAIN = 1437 -- images to learn from; the other 360 are the test
local STEPS, RATE = 500, 0.5

local folder = arg[0]:match("^(.*/)") or "./"
local data = luma.load(folder .. "data/digits.npz")
local images, labels = data.images, data.labels -- uint8, [1797 x 8 x 8] and [1797]
local n = #images

-- ---- a look at the data ----

local SHADES = " .:-=+*#%@" -- for 0 to 16

local function show(first, last)
    for row = 1, 8 do
        local line = {}
        for i = first, last do
            for _, pixel in ipairs(images[{i, row}]:totable()) do
                local shade = pixel * (#SHADES - 1) // 16 + 1
                line[#line + 1] = SHADES:sub(shade, shade)
            end
            line[#line + 1] = "  "
        end
        print(table.concat(line))
    end
    print("labels: " .. table.concat(labels[{{first, last}}]:totable(), " "))
end

print(("%d digits of %d x %d pixels"):format(n, images:size(2), images:size(3)))
show(1, 8)

local pixels = images:reshape(n, 64):to "float64"
local train, test = table.unpack(pixels:split({TRAIN, n - TRAIN}))
local train_labels, test_labels = table.unpack(labels:split({TRAIN, n - TRAIN}))

local function report(name, guesses, start)
    local right = guesses:eq(test_labels):sum():item()
    print(("%s: %d of %d right, %.2f s"):format(name, right, #test, luma.clock() - start))
end

-- ---- the nearest neighbour: |a - b|^2 = |a|^2 + |b|^2 - 2 ab ----

local start = luma.clock()
local distance = test:square():sum(2, {keepdim = true}) + train:square():sum(2)
    - test:matmul(train:t()) * 2
report("1-nearest neighbour", train_labels[distance:argmin(2)], start)

-- ---- a softmax classifier, its gradient written by hand ----

start = luma.clock()
local classes = train_labels:to "int64" + 1 -- positions count from 1
local target = luma.zeros(TRAIN, 10, {dtype = "float64"}):scatter_(2, classes:unsqueeze(2), 1)
local x = train / 16
local weight = luma.zeros(64, 10, {dtype = "float64"})
local bias = luma.zeros(10, {dtype = "float64"})

for step = 1, STEPS do
    local scores = x:matmul(weight) + bias
    local miss = (scores:softmax(2) - target) / TRAIN
    weight:sub_(x:t():matmul(miss) * RATE)
    bias:sub_(miss:sum(1) * RATE)
    if step % 100 == 0 then
        local loss = -(scores:log_softmax(2) * target):sum():item() / TRAIN
        print(("step %d of %d, loss %.4f"):format(step, STEPS, loss))
    end
end
report("softmax classifier", (test / 16):matmul(weight):add(bias):argmax(2) - 1, start)
