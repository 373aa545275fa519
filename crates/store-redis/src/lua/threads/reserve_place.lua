-- Reserves a place for a thread of an owner.
-- KEYS: 1 the places of the owner, by when they are over. ARGV: 1 ahead, 2 token, 3 how long it lasts.
-- Reply: how many places were reserved before and are still.
local key, ahead, lasts = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[3])
call('ZREMRANGEBYSCORE', key, '-inf', now(ahead))
local before = call('ZCARD', key)
call('ZADD', key, now(ahead) + lasts, ARGV[2])
call('PEXPIRE', key, lasts + ahead)
return before
