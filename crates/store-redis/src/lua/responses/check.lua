-- Checks that a response exists. KEYS: 1 response. ARGV: 1 `ahead`. Reply: the time, or 0 if there is no response.
local ahead = tonumber(ARGV[1])
return call('PTTL', KEYS[1]) > ahead and now(ahead) or 0
