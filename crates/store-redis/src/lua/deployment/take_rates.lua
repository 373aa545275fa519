-- Takes one permit from every rate, or none at all.
-- KEYS: one counter per rate. ARGV: 1 `ahead`, then the cost and the burst of each rate, in microseconds.
-- Reply: 0, or the zero-based index of the exhausted rate with the longest wait, and that wait in microseconds.
local t, fulls, index, longest = now_us(tonumber(ARGV[1])), {}, nil, 0
for i, key in ipairs(KEYS) do
  local interval, tolerance = tonumber(ARGV[2 * i]), tonumber(ARGV[2 * i + 1])
  local full = full_us(key, t, tolerance) + interval
  local wait = full - t - tolerance
  if wait > longest then index, longest = i - 1, wait end
  fulls[i] = full
end
if index then return {index, longest} end
for i, key in ipairs(KEYS) do
  -- PERSIST comes first, because a full Redis accepts SET only after the script has written. Without PERSIST, a full
  -- Redis would reject even requests that free memory.
  call('PERSIST', key)
  set_full(key, fulls[i], t)
end
return 0
