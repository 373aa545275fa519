-- The meta of a living thread, its end moved. KEYS: 1 thread. ARGV: 1 ahead, 2 access.
-- Reply: nil, a refusal, or meta and, in 5 bytes, the milliseconds that it lives from now.
local m, left = touch(KEYS[1], tonumber(ARGV[1]), ARGV[2])
return m and m .. pack('>I5', left) or left
