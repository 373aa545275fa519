-- Precedes a plain read in one pipeline, which counts only after a reply above 0. KEYS: 1 thread. ARGV: 1 ahead, 2 access, 3
-- `g` to extend no lifetime. Reply: remaining milliseconds, 0 without a thread; refused: -1 it has an owner, -2 another one.
local m, left = touch(KEYS[1], tonumber(ARGV[1]), ARGV[2], ARGV[3])
if m then return left end
if not left then return 0 end
return left[2] == 'owner_required' and -1 or -2
