-- Returns now and the ids of due threads. KEYS: 1 deadlines. ARGV: 1 ahead, 2 maximum.
local t = fmt('%.0f', now(tonumber(ARGV[1])))
return {t, call('ZRANGEBYSCORE', KEYS[1], '-inf', t, 'LIMIT', 0, ARGV[2])}
