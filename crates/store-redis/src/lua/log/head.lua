-- Reads the newest position in a log, and its horizon (the newest position that was deleted).
-- KEYS: 1 log, 2 horizon. Reply: newest position or nil, horizon or nil.
local newest = call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
return {newest and newest[1] or false, call('GET', KEYS[2])}
