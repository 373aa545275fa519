-- Extends the lifetime of a thread. A plain read follows in the same pipeline; its reply is valid only if this script
-- replies with a positive number.
-- KEYS: 1 thread. ARGV: 1 `ahead`, 2 `access`, 3 `g` to leave the lifetime unchanged.
-- Reply: remaining milliseconds; 0 if there is no thread; -1 if refused because the thread has an owner, -2 if refused
--   because it has a different owner.
local m, left = touch(KEYS[1], tonumber(ARGV[1]), ARGV[2], ARGV[3])
if m then return left end
if not left then return 0 end
return left[2] == 'owner_required' and -1 or -2
