-- Finds threads that are due for a check. KEYS: 1 deadlines. ARGV: 1 `ahead`, 2 maximum number. Reply: the time, and the
-- ids.
local t = fmt('%.0f', now(tonumber(ARGV[1])))
return {t, call('ZRANGEBYSCORE', KEYS[1], '-inf', t, 'LIMIT', 0, ARGV[2])}
