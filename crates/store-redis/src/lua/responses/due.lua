-- Lists open responses that are due. KEYS: 1 a bucket's open responses by due time. ARGV: 1 `ahead`, 2 maximum number.
-- Reply: ids of the due responses.
local ahead, start = tonumber(ARGV[1]), sub(KEYS[1], 1, -4)
local ids = {}
for _, id in ipairs(call('ZRANGEBYSCORE', KEYS[1], '-inf', now(ahead), 'LIMIT', 0, ARGV[2])) do
  if call('PTTL', start .. ':u:' .. id) > ahead then
    ids[#ids + 1] = id
  else
    call('ZREM', KEYS[1], id)
  end
end
return ids
