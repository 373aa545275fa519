-- Drops up to DROPPED_MAX of a history's oldest items, until the history is within its limit.
-- KEYS: 1 scope, 2 history, 3 ids of the history, 4 the thread of the scope, if any. ARGV: 1 `ahead`, 2 maximum bytes.
-- Reply: 1 if the history is within the limit after this call, else 0.
local ahead = tonumber(ARGV[1])
local k = {scope = KEYS[1], history = KEYS[2], ids = KEYS[3], thread = KEYS[4]}
local _, s = open_scope(k, ahead, false, '')
local over = s and s.history - tonumber(ARGV[2]) or 0
if over <= 0 then return 1 end
local found = oldest_items(k.history, s, over, {})
-- if Redis is full, this write fails before items are dropped; the write that needs the room would also fail
call('HSET', k.scope, 'M', pack_scope(s))
drop_items(k, s, found, ahead)
call('HSET', k.scope, 'M', pack_scope(s))
return found.is_enough and 1 or 0
