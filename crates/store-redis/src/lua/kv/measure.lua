-- Purges expired entries from a bucket, and reads the counts of namespaces: see entries.lua.
-- KEYS: 1 heads, 2 members, 3 ends, 4 counts. ARGV: 1 `ahead`, 2 maximum number of entries to purge, then 16-byte
--   hashes of namespaces. Reply: number of entries purged, then for each namespace its counts or nil.
local k = {heads = KEYS[1], members = KEYS[2], ends = KEYS[3], counts = KEYS[4]}
local reply = {purge(k, tonumber(ARGV[2]), tonumber(ARGV[1]))}
for i = 3, #ARGV do reply[#reply + 1] = call('HGET', k.counts, ARGV[i]) end
return reply
