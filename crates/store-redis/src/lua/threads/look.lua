-- Checks that a thread exists.
-- KEYS: 1 thread. ARGV: 1 `ahead`, 2 `access`, 3 `g` to leave the lifetime unchanged, 4 field or empty.
-- Reply: nil, a refusal, or the meta, the remaining milliseconds (5 bytes), and whether the thread has the field (1 byte).
local m, left = touch(KEYS[1], tonumber(ARGV[1]), ARGV[2], ARGV[3])
if not m then return left end
return m .. pack('>I5B', left, ARGV[4] and call('HEXISTS', KEYS[1], ARGV[4]) or 0)
