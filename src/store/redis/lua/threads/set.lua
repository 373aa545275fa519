-- Fast path: sets one value that is not chunked in each of some living threads that are not watched. Each write has its own
-- outcome: one that is rejected or fails changes nothing, and the others take place. Two writes to the same thread take place
-- one after the other.
-- KEYS: the threads. ARGV: policy, field and value of each.
-- Reply: the outcome of one write, or an array with those of several: 0 when it is for write.lua; the new meta; a refusal as write.lua has it; or an error.
local function set(key, policy, f, v)
  local ahead, _, _, max_bytes, max_keys = unpack_('>I6I5I6I4I4', policy)
  local m = call('HGET', key, 'M')
  if not m or byte(m) % 2 == 0 or byte(m) > 3 then return 0 end
  local owner, access = sub(m, META_BYTES + 1), sub(policy, POLICY_BYTES + 1)
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
end

local outcomes = {}
for i = 1, #KEYS do
  outcomes[i] = outcome_of(pcall(set, KEYS[i], ARGV[3 * i - 2], ARGV[3 * i - 1], ARGV[3 * i]))
end
return #KEYS == 1 and outcomes[1] or outcomes
