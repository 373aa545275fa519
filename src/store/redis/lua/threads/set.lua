-- Fast path: sets one value that is not chunked in a living thread that is not watched.
-- KEYS: 1 thread. ARGV: 1 policy, 2 field, 3 value.
-- Reply: 0 when it is for write.lua; the new meta; or a refusal as write.lua has it.
local key, f, v = KEYS[1], ARGV[2], ARGV[3]
local ahead, _, _, max_bytes, max_keys = unpack_('>I6I5I6I4I4', ARGV[1])
local m = call('HGET', key, 'M')
if not m or byte(m) % 2 == 0 or byte(m) > 3 then return 0 end
local owner, access = sub(m, META_BYTES + 1), sub(ARGV[1], POLICY_BYTES + 1)
if access ~= owner and access ~= '' and (access ~= '-' or owner ~= '') then return 0 end
local format, life, version, bytes, keys, created, written, ttl, ends, next_array, grace, sequence, watched = unpack_(META, m)
local kept = grace * 1000 + ahead
if call('PTTL', key) <= kept then return 0 end
local left = lifetime(ttl, ends, ahead)
if left == 0 or watched > now(ahead) then return 0 end
local before = bytes
local old = call('HSTRLEN', key, f)
if old == HEADER_BYTES and byte(call('HGET', key, f)) == 65 then return 0 end
if old > 0 then
  bytes = bytes - old + #v
else
  bytes, keys = bytes + #f + #v + 1, keys + 1
end
if bytes + 1 > max_bytes then return {'R', 'state_too_large', bytes + 1, before == 0 and 2 or before + 1} end
if keys > max_keys then return {'R', 'too_many_keys'} end

-- first, since it changes nothing if it fails
move_owned(key, owner, written, ahead)
m = pack(META, format, life, version + 1, bytes, keys, created, now(ahead), ttl, ends, next_array, grace, sequence, watched) .. owner
call('HSET', key, f, v, 'M', m)
call('PEXPIRE', key, left + kept)
return m
