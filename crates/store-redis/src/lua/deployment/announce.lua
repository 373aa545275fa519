-- Publishes a holder's announcement to the other holders of a pool.
-- KEYS: 1 the pool, a hash as in hold.lua. Field `mHOLDER` has a holder's expiry; `iHOLDER` has an announcement's
--   expiry, then the announcement; `n` has the pool's note.
-- ARGV: 1 `ahead`, 2 holder, 3 duration, 4 announcement, 5 new note, if any.
-- Reply: the previous note, each unexpired announcement, and false for each living holder without an announcement.
local t, lasts = now(tonumber(ARGV[1])), tonumber(ARGV[3])
-- replicas must find each other even when Redis is full
write_even_when_full(KEYS[1])
call('HSET', KEYS[1], 'i' .. ARGV[2], fmt('%.0f', t + lasts) .. ' ' .. ARGV[4])
local note = call('HGET', KEYS[1], 'n')
if ARGV[5] and ARGV[5] ~= note then call('HSET', KEYS[1], 'n', ARGV[5]) end
-- The note is kept for a year. To save writes, its expiry is renewed only when less than half a year remains.
local note_ttl = (note or ARGV[5]) and 365 * 86400000 or lasts
local left = call('PTTL', KEYS[1])
if left < lasts + ARGV[1] or left < note_ttl / 2 then call('PEXPIRE', KEYS[1], note_ttl + ARGV[1]) end

local fields = call('HGETALL', KEYS[1])
local announcements, silent, reply = {}, {}, {note}
for i = 1, #fields, 2 do
  local kind, holder = byte(fields[i]), sub(fields[i], 2)
  if kind == 105 then
    local ends, text = string.match(fields[i + 1], '^(%d+) (.*)$')
    if tonumber(ends) > t then
      announcements[holder], reply[#reply + 1] = true, text
    else
      call('HDEL', KEYS[1], fields[i])
    end
  elseif kind == 109 and tonumber(fields[i + 1]) > t then
    silent[#silent + 1] = holder
  end
end
for _, holder in ipairs(silent) do
  if not announcements[holder] then reply[#reply + 1] = false end
end
return reply
