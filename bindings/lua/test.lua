-- What acorn.c promises: lua5.4 test.lua, with package.cpath set by LUA_CPATH.
local acorn = require "acorn"

local function equal(a, b) assert(a == b, string.format("%s is not %s", tostring(a), tostring(b))) end
local function collect(f)
    local all = {}
    for value in f do all[#all + 1] = tostring(value) end
    return table.concat(all, " ")
end

-- What Lua's own coroutines cannot do: yield below functions in C.
local function words(yield) return function() string.gsub("one two", "%a+", function(word) yield(word) end) end end
local ok, message = coroutine.resume(coroutine.create(words(coroutine.yield)))
assert(not ok and message:find("attempt to yield across a C%-call boundary"))
equal(collect(acorn.wrap(words(acorn.yield))), "one two")
local sorted = {3, 1, 2}
local compared = 0
for _ in acorn.wrap(function() table.sort(sorted, function(a, b) acorn.yield(a) return a < b end) end) do
    compared = compared + 1
end
assert(compared >= 2)
equal(table.concat(sorted), "123")
local index = setmetatable({}, {__index = function(_, key) return acorn.yield(key) end})
local co = acorn.create(function() return load("local t = ... return t.a .. t.b")(index) end)
equal(select(2, acorn.resume(co)), "a")
equal(select(2, acorn.resume(co, "x")), "b")
equal(select(2, acorn.resume(co, "y")), "xy")
equal(acorn.status(co), "dead")

-- Values, errors, states.
co = acorn.create(function(a, b) local c, d = acorn.yield(a + b, a * b) return c .. d end)
equal(acorn.status(co), "suspended")
local _, sum, product = acorn.resume(co, 3, 4)
equal(sum, 7) equal(product, 12)
equal(select(2, acorn.resume(co, "p", "q")), "pq")
ok, message = acorn.resume(co)
assert(not ok and message:find("dead"))
co = acorn.create(function() string.gsub("x", "x", function() acorn.yield() error({code = 5}) end) end)
assert(acorn.resume(co))
ok, message = acorn.resume(co)
assert(not ok and message.code == 5)
assert(not pcall(acorn.wrap(function() error("out") end)))
local inner
local outer = acorn.create(function()
    inner = acorn.create(function() acorn.yield(acorn.status(inner) .. " " .. acorn.status(outer_co)) end)
    acorn.yield(select(2, acorn.resume(inner)))
end)
outer_co = outer
equal(select(2, acorn.resume(outer)), "running normal")
assert(not pcall(acorn.yield))
co = acorn.create(function() return acorn.resume(co) end)
local _, again, why = acorn.resume(co)
assert(again == false and why:find("non%-suspended"))

-- Lua's coroutines inside and outside.
local mixed = coroutine.wrap(function()
    for n in acorn.wrap(function()
        for n in coroutine.wrap(function() for n = 1, 3 do coroutine.yield(n) end end) do acorn.yield(n * 10) end
    end) do coroutine.yield(n) end
end)
equal(mixed(), 10) equal(mixed(), 20) equal(mixed(), 30)
ok, message = acorn.resume(acorn.create(function()
    return coroutine.wrap(function() acorn.yield(1) end)()
end))
assert(not ok and message:find("outside a coroutine of acorn"))

-- Closing: <close> variables, pcall, the garbage collector.
local closed = {}
local function holds(name)
    return function()
        local _ <close> = setmetatable({}, {__close = function() closed[#closed + 1] = name end})
        string.gsub("x", "x", function() acorn.yield() end)
    end
end
co = acorn.create(holds("by close"))
acorn.resume(co)
acorn.close(co)
equal(acorn.status(co), "dead")
co = acorn.create(holds("by gc"))
acorn.resume(co)
co = nil
collectgarbage() collectgarbage()
acorn.close(acorn.create(holds("never begun")))
equal(table.concat(closed, ", "), "by close, by gc")
co = acorn.create(function() pcall(acorn.yield) pcall(acorn.yield) return "caught" end)
acorn.resume(co)
acorn.close(co)

-- Many, in any order, with collections; and as deep as Lua lets C calls nest.
local all = {}
for i = 1, 500 do
    all[i] = acorn.wrap(function()
        for n = 1, 20 do string.gsub("x", "x", function() acorn.yield({i + n}) end) end
    end)
end
for n = 1, 20 do
    for i = 1, 500 do
        local at = (i * 71 + n) % 500 + 1
        equal(all[at]()[1], at + n)
    end
    collectgarbage "step"
end
local function deep(n) return (string.gsub("x", "x", function() return deep(n + 1) end)) end
ok, message = acorn.resume(acorn.create(function() return deep(0) end))
assert(not ok and message:find("C stack overflow"))
print("lua: passed")
