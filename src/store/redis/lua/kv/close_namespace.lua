-- Takes a namespace off the list. KEYS: 1 and 2 as open_namespace.lua has them. ARGV: 1 name.
-- Reply: 1.
local record = call('HGET', KEYS[1], ARGV[1])
if record then
  call('HDEL', KEYS[1], ARGV[1])
  call('ZREM', KEYS[2], sub(record, 1, 6) .. ARGV[1])
end
return 1
