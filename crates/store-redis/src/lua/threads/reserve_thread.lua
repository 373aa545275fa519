-- Reserves one more thread for an owner.
-- KEYS: 1 the owner's reservations by expiry. ARGV: 1 `ahead`, 2 token, 3 duration.
-- Reply: number of unexpired reservations before this call.
local key, ahead, lasts = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[3])
call('ZREMRANGEBYSCORE', key, '-inf', now(ahead))
local before = call('ZCARD', key)
call('ZADD', key, now(ahead) + lasts, ARGV[2])
call('PEXPIRE', key, lasts + ahead)
return before
