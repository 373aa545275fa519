-- Measures a range of an owner's threads.
-- KEYS: 1 the owner's threads. ARGV: 1 `ahead`, 2 rank of the first thread, 3 maximum number of threads.
-- Reply: number of threads, number of living threads, size of their states in bytes.
local ahead, from = tonumber(ARGV[1]), tonumber(ARGV[2])
local ids, threads, bytes = call('ZRANGE', KEYS[1], from, from + tonumber(ARGV[3]) - 1), 0, 0
local bucket = sub(KEYS[1], 1, find(KEYS[1], '}:c:', 1, true))
for _, id in ipairs(ids) do
  local m = living(bucket .. ':t:' .. id, ahead)
  if m then
    local _, _, _, its_bytes, keys = unpack_('>Bc8I6I4I4', m)
    threads, bytes = threads + 1, bytes + (keys > 0 and its_bytes + 1 or 2)
  end
end
return {#ids, threads, fmt('%.0f', bytes)}
