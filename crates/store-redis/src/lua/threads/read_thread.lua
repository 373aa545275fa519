-- Reads a thread without its state.
-- KEYS: 1 thread. ARGV: 1 `ahead`, 2 `access`, 3 `g` to leave the lifetime unchanged.
-- Reply: nil, a refusal, or meta, metadata or nil, milliseconds to live, current time, owner or nil.
local ahead = tonumber(ARGV[1])
local m, left = touch(KEYS[1], ahead, ARGV[2], ARGV[3])
if not m then return left end
return {m, call('HGET', KEYS[1], 'D'), left, now(ahead), #m > META_BYTES and call('HGET', KEYS[1], 'O')}
