-- Counts the threads of a bucket. KEYS: 1 index. Reply: the number. Fails while the slot migrates, because a missing key
-- may have moved.
local start = sub(KEYS[1], 1, -2)
settle(start .. 'd')
local count = call('ZCARD', start .. 'd') + call('ZCARD', start .. 'g:')
for _, name in ipairs(call('ZRANGE', KEYS[1], 0, -1)) do count = count + call('ZCARD', start .. 'g:' .. name) end
return count
