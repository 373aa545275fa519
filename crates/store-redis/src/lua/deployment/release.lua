-- Releases a holder's leases and removes its announcement. KEYS: 1 the pool. ARGV: 1 holder. Reply: 1.
local fields = call('HGETALL', KEYS[1])
call('HDEL', KEYS[1], 'm' .. ARGV[1], 'i' .. ARGV[1])
for i = 1, #fields, 2 do
  if byte(fields[i]) == 115 and string.match(fields[i + 1], '^%d+ (.*)$') == ARGV[1] then
    call('HDEL', KEYS[1], fields[i])
  end
end
return 1
