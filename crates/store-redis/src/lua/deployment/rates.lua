-- A rate's counter is a text: the microsecond at which the whole burst is available again, and which is the expiry of
-- the key too (see domain/rate.rs, which means the same).
local function now_us(ahead)
  local t = call('TIME')
  return t[1] * 1000000 + t[2] + ahead * 1000
end

-- The time at which the burst is full again; for a new counter, now.
local function full_us(key, t, tolerance)
  local full = tonumber(call('GET', key) or 0)
  -- more than what may be used up is known only to a clock that has gone back, or a wider limit before
  return math.min(math.max(full, t), t + tolerance)
end

local function set_full(key, full, t)
  if full <= t then return call('DEL', key) end
  call('SET', key, fmt('%.0f', full), 'PX', fmt('%.0f', math.ceil((full - t) / 1000)))
end
