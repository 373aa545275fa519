-- Counts a use of an entry, and renews its lifetime if less than half of the lifetime remains. The caller sends a plain
-- read of the entry in the same pipeline. The result of that read is valid only if this script replies 1.
-- KEYS: 1 entry, 2 ends, 3 counts. ARGV: 1 `ahead`, 2 member. Reply: 1, or 0 if the entry does not exist.
local entry, ahead, member = KEYS[1], tonumber(ARGV[1]), ARGV[2]
local left, at = call('PTTL', entry), now(ahead)
if left == -2 or left >= 0 and left <= ahead then return 0 end
-- a Redis that rejects writes must still answer reads
if not may_write(KEYS[3]) then return 1 end
local packed = call('GETRANGE', entry, 0, HEAD_AT + HEAD_BYTES - 2)
local ends, _, uses = unpack_(USES, packed)
local _, _, _, _, _, ttl = unpack_(HEAD, packed, HEAD_AT)
if ends > 0 and 2 * (ends - at) < ttl then
  ends = at + ttl
  call('PEXPIREAT', entry, fmt('%.0f', ends))
  call('ZADD', KEYS[2], fmt('%.0f', ends), member)
end
call('SETRANGE', entry, 0, pack(USES, ends, at, uses + 1))
count(KEYS[3], member, 0, 0, at)
return 1
