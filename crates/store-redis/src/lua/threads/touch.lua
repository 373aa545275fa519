-- Moves a thread's end, if this is a use. Goes before a plain read in one pipeline, whose reply counts only after a number
-- above 0. KEYS: 1 thread. ARGV: 1 ahead, 2 access, 3 `g` when this is no use.
-- Reply: the milliseconds that it lives from now, 0 when there is no living thread, -1 or -2 for a caller that may not use it: it has an owner, or another one.
local m, left = touch(KEYS[1], tonumber(ARGV[1]), ARGV[2], ARGV[3])
if m then return left end
if not left then return 0 end
return left[2] == 'owner_required' and -1 or -2
