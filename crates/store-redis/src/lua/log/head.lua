-- Reads the newest position and the horizon of a log. KEYS: 1 log, 2 horizon. Reply: both, with nil for a missing one.
local newest = call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
return {newest and newest[1] or false, call('GET', KEYS[2])}
