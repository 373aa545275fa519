-- Returns the newest position or nil, and the horizon. KEYS: 1 log, 2 horizon.
local newest = call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
return {newest and newest[1] or false, call('GET', KEYS[2])}
