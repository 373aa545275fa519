-- Which threads are due. KEYS: 1 deadlines. ARGV: 1 ahead, 2 how many at most.
-- Reply: now, ids.
local t = fmt('%.0f', now(tonumber(ARGV[1])))
return {t, call('ZRANGEBYSCORE', KEYS[1], '-inf', t, 'LIMIT', 0, ARGV[2])}
