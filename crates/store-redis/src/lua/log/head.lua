-- Reads the ends of a log. KEYS: 1 log, 2 horizon. Reply: newest position or nil, and the horizon.
local newest = call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
return {newest and newest[1] or false, call('GET', KEYS[2])}
