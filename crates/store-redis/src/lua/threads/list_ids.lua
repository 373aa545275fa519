-- Reads a group of a bucket's index. KEYS: 1 index. ARGV: 1 an id of the group, or empty for the first group, 2 cursor
-- of the list, 3 maximum number of ids to read from `:n`, the earlier index. Reply: packed ids in no particular order,
-- the first id of the next group or nil, and sorted ids from `:n` after the cursor: see index.lua. Fails while the hash
-- slot migrates, because a key that is missing may have moved to another node.
local start, id, after = sub(KEYS[1], 1, -2), ARGV[1], ARGV[2]
settle(start .. 'd')
local name = id ~= '' and index_at(start).group_of(id) or ''
local next = call('ZRANGEBYLEX', KEYS[1], name == '' and '-' or '(' .. name, '+', 'LIMIT', 0, 1)[1]
local earlier = call('ZRANGEBYLEX', start .. 'n', after == '' and '-' or '(' .. after, '+', 'LIMIT', 0, ARGV[3])
return {call('ZRANGE', start .. 'g:' .. name, 0, -1), next or false, earlier}
