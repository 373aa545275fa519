-- A counter holds the time when the whole burst is available again, in microseconds. The key expires at that time. See
-- domain/rate.rs.
local function now_us(ahead)
  local t = call('TIME')
  return t[1] * 1000000 + t[2] + ahead * 1000
end

-- Returns the time when the whole burst is available again, or `t` for a new counter.
local function full_us(key, t, tolerance)
  local full = tonumber(call('GET', key) or 0)
  -- the stored time is later than `t + tolerance` only if the clock was set back, or if the limit used to be higher
  return math.min(math.max(full, t), t + tolerance)
end

local function set_full(key, full, t)
  if full <= t then return call('DEL', key) end
  call('SET', key, fmt('%.0f', full), 'PX', fmt('%.0f', math.ceil((full - t) / 1000)))
end
