-- Says something of a holder to all others of a pool.
-- KEYS: 1 pool, as in hold.lua: `mHOLDER` until when a holder lives; `iHOLDER` what it said, after
-- until when that counts; `n` the note.
-- ARGV: 1 ahead, 2 holder, 3 for how long, 4 what it says, 5 the new note, if any.
-- Reply: the note that was there, then what each living holder has said, this one included; false for
-- one that said nothing.
local t, lasts = now(tonumber(ARGV[1])), tonumber(ARGV[3])
-- replicas have to know of each other while Redis is full, too
write_even_when_full(KEYS[1])
call('HSET', KEYS[1], 'i' .. ARGV[2], fmt('%.0f', t + lasts) .. ' ' .. ARGV[4])
local note = call('HGET', KEYS[1], 'n')
if ARGV[5] and ARGV[5] ~= note then call('HSET', KEYS[1], 'n', ARGV[5]) end
-- the note stays for a year, which is not moved each time
local kept = (note or ARGV[5]) and 365 * 86400000 or lasts
local left = call('PTTL', KEYS[1])
if left < lasts + ARGV[1] or left < kept / 2 then call('PEXPIRE', KEYS[1], kept + ARGV[1]) end

local fields = call('HGETALL', KEYS[1])
local said, silent, reply = {}, {}, {note}
for i = 1, #fields, 2 do
  local kind, holder = byte(fields[i]), sub(fields[i], 2)
  if kind == 105 then
    local ends, text = string.match(fields[i + 1], '^(%d+) (.*)$')
    if tonumber(ends) > t then
      said[holder], reply[#reply + 1] = true, text
    else
      call('HDEL', KEYS[1], fields[i])
    end
  elseif kind == 109 and tonumber(fields[i + 1]) > t then
    silent[#silent + 1] = holder
  end
end
for _, holder in ipairs(silent) do
  if not said[holder] then reply[#reply + 1] = false end
end
return reply
