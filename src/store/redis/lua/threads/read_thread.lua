-- All but the state. KEYS: 1 thread. ARGV: 1 ahead.
-- Reply: nil, or meta, metadata or nil, milliseconds to live, now.
local ahead = tonumber(ARGV[1])
local m, left = touch(KEYS[1], ahead)
if not m then return false end
return {m, call('HGET', KEYS[1], 'D'), left, now(ahead)}
