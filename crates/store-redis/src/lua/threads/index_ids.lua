-- Adds ids of threads from earlier versions to the sorted ids, in batches.
-- KEYS: 1 deadlines, 2 ids. ARGV: 1 first rank, 2 number of ids. Reply: 1 if there are more, else 0.
local from, many = tonumber(ARGV[1]), tonumber(ARGV[2])
local ids, listed = call('ZRANGE', KEYS[1], from, from + many - 1), {}
for _, id in ipairs(ids) do
  listed[#listed + 1], listed[#listed + 2] = 0, id
end
in_slices('ZADD', KEYS[2], listed)
return #ids == many and 1 or 0
