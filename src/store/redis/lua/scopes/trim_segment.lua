-- Removes copies of later items from a segment of a history, as many as one script may.
-- KEYS: 1 scope. ARGV: 1 number of the segment, 2 its last place. Reply: 1 if none is left, or 0.
local MOST_TRIMMED = 200
local stream, its_ids = segments_of(KEYS[1]).keys(ARGV[1])
local items = call('XRANGE', stream, '(' .. ARGV[2] .. '-0', '+', 'COUNT', MOST_TRIMMED)
local entries, ids = {}, {}
for i, item in ipairs(items) do entries[i], ids[i] = item[1], item[2][4] end
in_slices('XDEL', stream, entries)
in_slices('HDEL', its_ids, ids)
return #items < MOST_TRIMMED and 1 or 0
