-- Counts the threads of a bucket. KEYS: 1 index. Reply: number of threads. Fails while the hash slot migrates, because
-- a key that is missing may have moved to another node.
local start = sub(KEYS[1], 1, -2)
settle(start .. 'd')
local count = call('ZCARD', start .. 'd') + call('ZCARD', start .. 'g:')
for _, name in ipairs(call('ZRANGE', KEYS[1], 0, -1)) do count = count + call('ZCARD', start .. 'g:' .. name) end
return count
