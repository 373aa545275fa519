-- Gives one permit back to each rate.
-- KEYS: one counter per rate. ARGV: as in take_rates.lua. Reply: 0.
local t = now_us(tonumber(ARGV[1]))
for i, key in ipairs(KEYS) do
  local interval, tolerance = tonumber(ARGV[2 * i]), tonumber(ARGV[2 * i + 1])
  call('PERSIST', key)
  set_full(key, full_us(key, t, tolerance) - interval, t)
end
return 0
