-- Extends the lifetime of a thread. The caller sends a plain read of the thread in the same pipeline. The result of
-- that read is valid only if this script replies with a positive number.
-- KEYS: 1 thread. ARGV: 1 `ahead`, 2 `access`, 3 `g` to leave the lifetime unchanged.
-- Reply: remaining milliseconds; 0 if the thread does not exist; -1 if only the thread has an owner, -2
--   if the thread has a different owner.
local m, left = touch(KEYS[1], tonumber(ARGV[1]), ARGV[2], ARGV[3])
if m then return left end
if not left then return 0 end
return left[2] == 'owner_required' and -1 or -2
