-- The meta of a living thread, its end moved if this is a use. KEYS: 1 thread.
-- ARGV: 1 ahead, 2 access, 3 `g` when this is no use, 4 field or nothing.
-- Reply: nil, a refusal, or meta, in 5 bytes the milliseconds that it lives from now, and in one whether it has the field.
local m, left = touch(KEYS[1], tonumber(ARGV[1]), ARGV[2], ARGV[3])
if not m then return left end
return m .. pack('>I5B', left, ARGV[4] and call('HEXISTS', KEYS[1], ARGV[4]) or 0)
