-- Takes one of each of some rates, or none of any.
-- KEYS: the counters. ARGV: 1 ahead, then for each counter what one costs and what may be used up.
-- Reply: 0, or the place of the rate that has none left, from 0, and for how many microseconds; of
-- several the one with the longest wait.
local t, fulls, place, longest = now_us(tonumber(ARGV[1])), {}, nil, 0
for i, key in ipairs(KEYS) do
  local interval, tolerance = tonumber(ARGV[2 * i]), tonumber(ARGV[2 * i + 1])
  local full = full_us(key, t, tolerance) + interval
  local wait = full - t - tolerance
  if wait > longest then place, longest = i - 1, wait end
  fulls[i] = full
end
if place then return {place, longest} end
for i, key in ipairs(KEYS) do
  -- a write that frees memory is not to be held up
  call('PERSIST', key)
  set_full(key, fulls[i], t)
end
return 0
