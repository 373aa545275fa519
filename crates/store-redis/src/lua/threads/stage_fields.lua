-- Stages fields of a hash for import.lua. KEYS: 1 hash. ARGV: 1 lifetime, then fields and values. Reply: 1.
local fields = {}
for i = 2, #ARGV do fields[i - 1] = ARGV[i] end
in_slices('HSET', KEYS[1], fields)
call('PEXPIRE', KEYS[1], ARGV[1])
return 1
