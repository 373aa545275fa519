-- Finds out by trial whether Redis packs a hash with a value of a given size, because CONFIG is often forbidden.
-- KEYS: 1 an unused key. ARGV: 1 number of bytes. Reply: the encoding of the hash.
call('HSET', KEYS[1], '', string.rep('x', tonumber(ARGV[1])))
local encoding = redis.pcall('OBJECT', 'ENCODING', KEYS[1])
call('UNLINK', KEYS[1])
return encoding
