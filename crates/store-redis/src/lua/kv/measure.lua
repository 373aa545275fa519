-- Purges entries. KEYS: 1 heads, 2 members, 3 ends, 4 counts. ARGV: 1 ahead, 2 maximum to purge, then 16-byte namespaces.
-- Reply: number purged, then the counts of each namespace or nil.
local k = {heads = KEYS[1], members = KEYS[2], ends = KEYS[3], counts = KEYS[4]}
local found = {purge(k, tonumber(ARGV[2]), tonumber(ARGV[1]))}
for i = 3, #ARGV do found[#found + 1] = call('HGET', k.counts, ARGV[i]) end
return found
