-- Lists the keys of a thread. KEYS: 1 thread. ARGV: 1 `ahead`, 2 `access`, 3 `g` to leave the lifetime unchanged.
-- Reply: nil, a refusal, or meta and the names of all fields.
local m, refusal = touch(KEYS[1], tonumber(ARGV[1]), ARGV[2], ARGV[3])
if not m then return refusal end
return {m, call('HKEYS', KEYS[1])}
