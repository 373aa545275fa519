-- Checks that a response still exists. KEYS: 1 response. ARGV: 1 `ahead`. Reply: the current time; 0 if it has expired.
local ahead = tonumber(ARGV[1])
return call('PTTL', KEYS[1]) > ahead and now(ahead) or 0
