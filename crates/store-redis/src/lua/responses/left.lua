-- KEYS: 1 response. ARGV: 1 ahead. Reply: now, or 0 if the response is no longer kept.
local ahead = tonumber(ARGV[1])
return call('PTTL', KEYS[1]) > ahead and now(ahead) or 0
