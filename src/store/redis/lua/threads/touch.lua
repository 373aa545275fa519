-- Moves a thread's end. Goes before a plain read in one pipeline, whose reply counts only after 1.
-- KEYS: 1 thread. ARGV: 1 ahead, 2 access. Reply: 1, 0 when there is no living thread, 2 or 3 for a caller that may
-- not use it: it has an owner, or another one.
local m, refusal = touch(KEYS[1], tonumber(ARGV[1]), ARGV[2])
if m then return 1 end
if not refusal then return 0 end
return refusal[2] == 'owner_required' and 2 or 3
