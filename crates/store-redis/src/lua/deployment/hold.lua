-- Renews a holder's leases in a pool. Takes free slots, or gives slots back, until the holder has its share.
-- KEYS: 1 the pool, a hash. Field `mHOLDER` has a holder's expiry; `sSLOT` has the expiry of a slot's lease, then the
--   lease's holder; `iHOLDER` is described in announce.lua.
-- ARGV: 1 `ahead`, 2 number of slots, 3 holder, 4 duration of the leases.
-- Reply: the slots that the holder now has.
local ahead, slots, holder, lasts = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
local t, pool = now(ahead), {}
-- if the leases expired, no replica would end threads or delete old data, so a full Redis must accept the renewal
write_even_when_full(KEYS[1])
local fields = call('HGETALL', KEYS[1])
for i = 1, #fields, 2 do pool[fields[i]] = fields[i + 1] end
local members = 1
for field, value in pairs(pool) do
  if byte(field) == 109 and field ~= 'm' .. holder then
    if tonumber(value) > t then members = members + 1 else call('HDEL', KEYS[1], field) end
  end
end
local until_ = fmt('%.0f', t + lasts)
call('HSET', KEYS[1], 'm' .. holder, until_)

local share, held, free = math.ceil(slots / members), {}, {}
for slot = 0, slots - 1 do
  local expires, by = string.match(pool['s' .. slot] or '', '^(%d+) (.*)$')
  if by == holder and tonumber(expires) > t then
    if #held < share then held[#held + 1] = slot else call('HDEL', KEYS[1], 's' .. slot) end
  elseif not by or tonumber(expires) <= t then
    free[#free + 1] = slot
  end
end
for _, slot in ipairs(free) do
  if #held < share then held[#held + 1] = slot end
end
for _, slot in ipairs(held) do call('HSET', KEYS[1], 's' .. slot, until_ .. ' ' .. holder) end
if call('PTTL', KEYS[1]) < lasts + ahead then call('PEXPIRE', KEYS[1], lasts + ahead) end
return held
