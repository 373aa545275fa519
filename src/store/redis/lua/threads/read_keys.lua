-- The names of all fields. KEYS: 1 thread. ARGV: 1 ahead. Reply: nil, or meta, names.
local m = touch(KEYS[1], tonumber(ARGV[1]))
if not m then return false end
return {m, call('HKEYS', KEYS[1])}
